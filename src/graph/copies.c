/* SPDX-License-Identifier: Apache-2.0
 * Follows values back through copies: copies.h. */
#include "graph/copies.h"

#include "base/acquire.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/ops.h"
#include "tensor/buf.h"

enum { MOST_COPIES = 16 }; /* that are followed to learn a type */

/** Returns the type of a value, which may be known of the node that computes it before types are
 * inferred; LAC_DTYPE_NONE: it is not. */
static lac_dtype dtype_of_value(const laci_graph *graph, int value) {
  enum { OUTPUT_TYPE_ZERO = 2 };
  for (int depth = 0; value >= 0 && value < graph->n_values && depth < MOST_COPIES; depth++) {
    const laci_value *v = &graph->values[value];
    if (v->type.dtype != LAC_DTYPE_NONE || v->producer < 0) return v->type.dtype;
    const laci_node *node = &graph->nodes[v->producer];
    const lac_dtype to = (lac_dtype)laci_node_int(node, "to", LAC_DTYPE_NONE);
    if (node->op == &laci_op_cast) return to;
    if (node->op == &laci_op_quantize_linear) {
      const bool has_zero =
          node->n_inputs > OUTPUT_TYPE_ZERO && node->inputs[OUTPUT_TYPE_ZERO] >= 0;
      if (!has_zero) return (lac_dtype)laci_node_int(node, "output_dtype", LAC_DTYPE_U8);
      value = node->inputs[OUTPUT_TYPE_ZERO];
    } else if (node->op == &laci_op_identity || node->op == &laci_op_clip) {
      value = node->inputs[0];
    } else {
      return LAC_DTYPE_NONE;
    }
  }
  return LAC_DTYPE_NONE;
}

bool laci_is_copy(const laci_graph *graph, const laci_node *node) {
  if (node->n_inputs != 1 || node->n_outputs != 1 || node->inputs[0] < 0) return false;
  if (node->op == &laci_op_identity) return true;
  const lac_dtype from =
      node->op == &laci_op_cast ? dtype_of_value(graph, node->inputs[0]) : LAC_DTYPE_NONE;
  return from != LAC_DTYPE_NONE && laci_node_int(node, "to", LAC_DTYPE_NONE) == (int64_t)from;
}

int laci_graph_skip_copies(const laci_graph *graph, int value) {
  int body = -1;
  while (value >= 0 && value < graph->n_values && graph->values[value].producer >= 0) {
    const laci_node *node = &graph->nodes[graph->values[value].producer];
    if (!laci_is_copy(graph, node) || (body >= 0 && node->body != body)) break;
    body = node->body;
    value = node->inputs[0];
  }
  return value;
}

bool laci_is_quantized_integer(const laci_graph *graph, int value) {
  const lac_dtype dtype = dtype_of_value(graph, value);
  return dtype == LAC_DTYPE_I8 || dtype == LAC_DTYPE_U8 || dtype == LAC_DTYPE_I16 ||
         dtype == LAC_DTYPE_U16;
}

bool laci_is_clip_of_integers(const laci_graph *graph, const laci_node *node) {
  if (node->op != &laci_op_clip || node->n_inputs < 1 || node->inputs[0] < 0) return false;
  return laci_is_quantized_integer(graph, node->inputs[0]);
}

/** Reads all elements of a stored list of integers: the least and the largest. False: the value is
 * not stored, or of another type. */
static bool read_extremes(const laci_graph *graph, int value, int64_t *least, int64_t *most) {
  value = laci_graph_skip_copies(graph, value);
  const int at = value < 0 ? -1 : graph->values[value].stored;
  const laci_stored *stored = at < 0 ? NULL : &graph->stored[at];
  if (!stored || stored->overridable || !laci_dtype_is_integer(stored->dtype)) return false;
  const int64_t n = laci_shape_count(&stored->shape);
  laci_acquired_bytes held = {0};
  if (n < 1 || laci_stored_acquire(graph, stored, &held, NULL)) return false;
  for (int64_t k = 0; k < n; k++) {
    int64_t one;
    laci_read_i64(stored->dtype, held.bytes, k, 1, &one);
    if (k == 0 || one < *least) *least = one;
    if (k == 0 || one > *most) *most = one;
  }
  laci_bytes_release(&held);
  return true;
}

bool laci_clip_keeps_zero_points(const laci_graph *graph, const laci_node *clip, int zero) {
  int64_t least = 0, most = 0, bound, ignored;
  if (zero >= 0 && !read_extremes(graph, zero, &least, &most)) return false;
  for (int port = 1; port <= 2; port++) {
    if (port >= clip->n_inputs || clip->inputs[port] < 0) continue;
    if (!read_extremes(graph, clip->inputs[port], &bound, &ignored)) return false;
    if (port == 1 ? least < bound : most > bound) return false;
  }
  return true;
}

int laci_graph_find_quantizer(const laci_graph *graph, int value, int *clip) {
  *clip = -1;
  for (;;) {
    value = laci_graph_skip_copies(graph, value);
    const int producer = value < 0 ? -1 : graph->values[value].producer;
    if (producer < 0) return -1;
    const laci_node *node = &graph->nodes[producer];
    if (node->op == &laci_op_quantize_linear) return producer;
    if (*clip >= 0 || !laci_is_clip_of_integers(graph, node)) return -1;
    *clip = producer;
    value = node->inputs[0];
  }
}
