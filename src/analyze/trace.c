/* SPDX-License-Identifier: Apache-2.0
 * Finds where a layer's weight comes from: a stored tensor, then casts, transposes and
 * dequantization. */
#include <string.h>

#include "analyze/layers_in.h"
#include "base/acquire.h"
#include "graph/copies.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "tensor/buf.h"

/* Is the value stored, or a copy of one that is? */
static bool is_stored(const laci_graph *graph, int value) {
  return value >= 0 && graph->values[laci_graph_skip_copies(graph, value)].stored >= 0;
}

/* Is the value a stored operand that is one number (*axis -1), or runs along one axis of a value of
 * that rank? */
static bool is_stored_along_one_axis(const laci_graph *graph, int value, int rank, int *axis) {
  if (!is_stored(graph, value)) return false;
  const laci_shape *shape = &graph->values[value].type.shape;
  *axis = -1;
  for (int a = 0; a < shape->rank; a++) {
    if (shape->dims[a] == 1) continue;
    if (*axis >= 0) return false;
    *axis = a + rank - shape->rank;
  }
  return shape->rank >= 0 && shape->rank <= rank;
}

static void clear_quantization_grid(laci_weight_source *s) {
  s->grid_node = s->grid_axis = -1;
  s->grid_block = 0;
}

static bool trace_through_transpose(const laci_graph *graph, const laci_node *node,
                                    laci_weight_source *s) {
  size_t n;
  const int64_t *perm = laci_node_ints(node, "perm", &n);
  int rank = graph->values[node->inputs[0]].type.shape.rank;
  if (rank < 0 || (perm && n != (size_t)rank) || s->scale_block) return false;
  int through[LACI_MAX_RANK];
  for (int a = 0; a < rank; a++) {
    int64_t to = perm ? perm[a] : rank - 1 - a;
    if (to < 0 || to >= rank) return false;
    through[a] = (int)to;
  }
  for (int a = 0; a < LACI_MAX_RANK; a++) {
    if (s->axis_of[a] >= 0 && s->axis_of[a] < rank) s->axis_of[a] = through[s->axis_of[a]];
  }
  if (s->scale_axis >= 0) s->scale_axis = through[s->scale_axis];
  if (s->factor_axis >= 0) s->factor_axis = through[s->factor_axis];
  if (s->grid_block)
    clear_quantization_grid(s); /* blocks of a grid depend on the order of the axes */
  if (s->grid_axis >= 0) s->grid_axis = through[s->grid_axis];
  return true;
}

static bool trace_through_dequantize(const laci_graph *graph, const laci_node *node,
                                     laci_weight_source *s) {
  if (s->scale_value >= 0 || node->n_inputs < 2 || node->inputs[1] < 0) return false;
  const laci_value *scale = &graph->values[node->inputs[1]];
  int rank = graph->values[node->inputs[0]].type.shape.rank, along = 0;
  int64_t axis = laci_node_int(node, "axis", 1), block = laci_node_int(node, "block_size", 0);
  if (axis < 0) axis += rank;
  if (rank < 0 || axis < 0 || block < 0) return false;
  if (block > 0 && (!is_stored(graph, node->inputs[1]) || scale->type.shape.rank != rank))
    return false;
  if (block == 0 && !is_stored_along_one_axis(graph, node->inputs[1], rank, &along)) return false;
  s->scale_block = block;
  s->scale_value = node->inputs[1];
  s->scale_axis = along < 0 ? -1 : (int)axis;
  s->zero_value = node->n_inputs > 2 ? node->inputs[2] : -1;
  return axis < rank && (s->zero_value < 0 || is_stored(graph, s->zero_value));
}

/* Are both absent, the same value, or stored tensors of equal content? */
static bool has_same_content(const laci_graph *graph, int a, int b) {
  if (a == b || a < 0 || b < 0) return a == b;
  a = laci_graph_skip_copies(graph, a);
  b = laci_graph_skip_copies(graph, b);
  if (a == b) return true;
  if (graph->values[a].stored < 0 || graph->values[b].stored < 0) return false;
  const laci_stored *x = &graph->stored[graph->values[a].stored];
  const laci_stored *y = &graph->stored[graph->values[b].stored];
  laci_acquired_bytes held_x, held_y;
  if (x->dtype != y->dtype || !laci_shape_equal(&x->shape, &y->shape) ||
      x->size_bytes != y->size_bytes || laci_stored_acquire(graph, x, &held_x, NULL))
    return false;
  bool same = laci_stored_acquire(graph, y, &held_y, NULL) == LAC_OK;
  if (same) {
    same = memcmp(held_x.bytes, held_y.bytes, x->size_bytes) == 0;
    laci_bytes_release(&held_y);
  }
  laci_bytes_release(&held_x);
  return same;
}

static int input_value_or_none(const laci_node *node, int port) {
  return port < node->n_inputs ? node->inputs[port] : -1;
}

/* A float that is quantized and dequantized with equal zero points: 0 becomes the zero point and
 * then 0 again, for any scale. So the float can be masked, by its magnitude: rounding with one
 * scale does not change the order of magnitudes. */
bool laci_is_quantize_dequantize(const laci_graph *graph, const laci_node *back, int *quantizer) {
  int clip;
  const int producer = laci_graph_find_quantizer(graph, back->inputs[0], &clip);
  if (producer < 0) return false;
  const laci_node *there = &graph->nodes[producer];
  if (clip >= 0 &&
      !laci_clip_keeps_zero_points(graph, &graph->nodes[clip], input_value_or_none(there, 2)))
    return false;
  bool same_axis = laci_node_int(there, "axis", 1) == laci_node_int(back, "axis", 1) &&
                   laci_node_int(there, "block_size", 0) == laci_node_int(back, "block_size", 0);
  if (there->inputs[0] < 0 || !same_axis ||
      !laci_dtype_is_float(graph->values[there->inputs[0]].type.dtype) ||
      !has_same_content(graph, input_value_or_none(there, 1), input_value_or_none(back, 1)) ||
      !has_same_content(graph, input_value_or_none(there, 2), input_value_or_none(back, 2)))
    return false;
  for (int port = 1; port < 3; port++) {
    const int value = input_value_or_none(there, port);
    if (value >= 0 && !is_stored(graph, value)) return false;
  }
  *quantizer = producer;
  return true;
}

static void record_quantization_grid(const laci_graph *graph, int quantizer,
                                     laci_weight_source *s) {
  const laci_node *node = &graph->nodes[quantizer];
  if (node->n_inputs < 2 || node->inputs[1] < 0) return;
  const laci_shape *scale = &graph->values[node->inputs[1]].type.shape;
  const int rank = graph->values[node->inputs[0]].type.shape.rank;
  int64_t axis = laci_node_int(node, "axis", 1);
  if (axis < 0) axis += rank;
  if (s->grid_node >= 0 || (laci_shape_count(scale) != 1 && (axis < 0 || axis >= rank))) return;
  s->grid_node = quantizer;
  s->grid_axis = laci_shape_count(scale) == 1 ? -1 : (int)axis;
  s->grid_block = s->grid_axis < 0 ? 0 : laci_node_int(node, "block_size", 0);
  s->grid_after_scales = s->factor_value < 0;
}

static bool trace_through_mul(const laci_graph *graph, const laci_node *node, int *next,
                              laci_weight_source *s) {
  if (s->factor_value >= 0 || node->n_inputs != 2) return false;
  for (int side = 0; side < 2; side++) {
    int other = node->inputs[1 - side], rank = graph->values[node->inputs[side]].type.shape.rank,
        axis;
    if (rank < 2 || !is_stored_along_one_axis(graph, other, rank, &axis)) continue;
    s->factor_value = other;
    s->factor_axis = axis;
    *next = node->inputs[side];
    return true;
  }
  return false;
}

/* Follows a Reshape backwards: an axis is kept where its size and the product of sizes before it
 * are equal on both sides. */
static bool trace_through_reshape(const laci_graph *graph, const laci_node *node,
                                  laci_weight_source *s) {
  const laci_shape *in = &graph->values[node->inputs[0]].type.shape;
  const laci_shape *out = &graph->values[node->outputs[0]].type.shape;
  if (!laci_shape_is_known(in) || !laci_shape_is_known(out) || s->scale_value >= 0 ||
      s->factor_value >= 0)
    return false;
  for (int a = 0; a < LACI_MAX_RANK; a++) {
    int from = s->axis_of[a], found = -1;
    if (from < 0 || from >= out->rank) continue;
    for (int b = 0; b < in->rank && found < 0; b++) {
      bool same = in->dims[b] == out->dims[from] && in->dims[b] > 1 &&
                  laci_shape_count_range(in, 0, b) == laci_shape_count_range(out, 0, from);
      if (same) found = b;
    }
    s->axis_of[a] = found;
  }
  if (s->grid_axis >= 0)
    clear_quantization_grid(s); /* the grid's axis may have become a part of another axis */
  s->reshaped = true;
  return true;
}

bool laci_trace_weight(const laci_graph *graph, int value, laci_weight_source *s) {
  *s = (laci_weight_source){.stored = -1,
                            .scale_value = -1,
                            .zero_value = -1,
                            .factor_value = -1,
                            .scale_axis = -1,
                            .factor_axis = -1,
                            .grid_node = -1,
                            .grid_axis = -1};
  for (int a = 0; a < LACI_MAX_RANK; a++) s->axis_of[a] = a;
  while (value >= 0 && graph->values[value].stored < 0) {
    int producer = graph->values[value].producer;
    if (producer < 0 || s->n_chain == (int)(sizeof s->chain / sizeof *s->chain)) return false;
    const laci_node *node = &graph->nodes[producer];
    if (node->n_inputs < 1 || node->inputs[0] < 0) return false;
    int next = node->inputs[0], quantizer;
    if (laci_node_is(node, "DequantizeLinear") &&
        laci_is_quantize_dequantize(graph, node, &quantizer) &&
        s->n_chain + 2 <= (int)(sizeof s->chain / sizeof *s->chain)) {
      s->chain[s->n_chain++] = producer;
      s->chain[s->n_chain++] = quantizer;
      record_quantization_grid(graph, quantizer, s);
      value = graph->nodes[quantizer].inputs[0];
      continue;
    }
    bool reshapes = laci_node_is(node, "Reshape") || laci_node_is(node, "Flatten") ||
                    laci_node_is(node, "Squeeze") || laci_node_is(node, "Unsqueeze");
    if (!s->reshaped && s->scale_value < 0 && s->factor_value < 0 &&
        laci_trace_weight_norm(graph, value, &s->norm)) {
      s->normalized = true;
      s->product = value;
      value = s->norm.v;
      break;
    }
    bool known =
        laci_node_is(node, "Identity") || laci_node_is(node, "Cast") ||
        (reshapes && trace_through_reshape(graph, node, s)) ||
        (laci_node_is(node, "Transpose") && trace_through_transpose(graph, node, s)) ||
        (laci_node_is(node, "DequantizeLinear") && trace_through_dequantize(graph, node, s)) ||
        (laci_node_is(node, "Mul") && trace_through_mul(graph, node, &next, s)) ||
        (s->scale_value >= 0 && laci_is_clip_of_integers(graph, node) &&
         laci_clip_keeps_zero_points(graph, node, s->zero_value));
    if (!known) return false;
    s->chain[s->n_chain++] = producer;
    value = next;
  }
  if (value < 0) return false;
  s->stored = graph->values[value].stored;
  return true;
}
