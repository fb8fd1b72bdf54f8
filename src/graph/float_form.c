/* SPDX-License-Identifier: Apache-2.0
 * Makes float forms: float_form.h.
 *
 * Every value of integers that a rewritten node computes has a *counterpart*, the floats that it
 * stands for. A later node reads the counterpart where it names the same scale and zero point, and
 * dequantizes the integers elsewhere. Operators that move elements (Reshape, MaxPool) are repeated
 * on the counterpart. The nodes of integers stay; what nobody reads is not computed. */
#include "graph/float_form.h"

#include <math.h>
#include <string.h>

#include "base/acquire.h"
#include "base/error.h"
#include "base/memory.h"
#include "graph/copies.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/ops.h"
#include "graph/quantized.h"

/** The floats that a value of integers stands for. scale -1: the integers minus the zero point. */
typedef struct counterpart {
  int value; /* -1: there is none */
  int scale, zero;
  bool rearranged; /* the value is the result of a copy of an operator that only moves elements */
} counterpart;

typedef struct builder {
  laci_arena *arena;
  const laci_graph *graph;
  const laci_node *origin; /* the node that is rewritten */
  laci_node *nodes;
  laci_value *values;
  size_t n_nodes, node_capacity, n_values, value_capacity;
  counterpart *counterparts; /* [n_values of graph] the floats that each value of integers stands
                                for */
  int *place;                /* [n_nodes of graph] index of the last of the new nodes into which
                                each node was rewritten */
  bool failed;               /* an allocation failed, and the form is incomplete */
} builder;

/* ---- Adding nodes and values ---- */

static int add_value(builder *b) {
  void *array = b->values;
  if (b->failed || !laci_grow(&array, b->n_values, &b->value_capacity, sizeof *b->values)) {
    b->failed = true;
    return -1;
  }
  b->values = array;
  b->values[b->n_values] = (laci_value){
      .name = b->origin->name, .type = {.shape = {.rank = -1}}, .producer = -1, .stored = -1};
  return (int)b->n_values++;
}

static const int *copy_list(builder *b, const int *list, int n) {
  int *copy = laci_arena_alloc(b->arena, (size_t)n, sizeof *copy);
  if (!copy) b->failed = true;
  else if (n > 0) memcpy(copy, list, (size_t)n * sizeof *copy);
  return copy;
}

static void add_node(builder *b, const laci_node *node) {
  void *array = b->nodes;
  if (b->failed || !laci_grow(&array, b->n_nodes, &b->node_capacity, sizeof *b->nodes)) {
    b->failed = true;
    return;
  }
  b->nodes = array;
  b->nodes[b->n_nodes++] = *node;
}

enum { OPSET = 21 }; /* of the nodes that are added */

/** Adds a node of ai.onnx with one output, which it returns; attr NULL: no attribute. */
static int add_onnx_node(builder *b, const laci_op *op, int n, const int *inputs,
                         const laci_attr *attr, int output) {
  if (output < 0) output = add_value(b);
  laci_attr *attrs = laci_arena_alloc(b->arena, 1, sizeof *attrs);
  if (!attrs) b->failed = true;
  if (attrs && attr) *attrs = *attr;
  laci_node made = {.name = b->origin->name,
                    .type = op->name,
                    .domain = op->domain ? op->domain : "",
                    .version = OPSET,
                    .op = op,
                    .n_inputs = n,
                    .inputs = copy_list(b, inputs, n),
                    .n_outputs = 1,
                    .outputs = copy_list(b, &output, 1),
                    .n_attrs = attr ? 1 : 0,
                    .attrs = attrs,
                    .body = b->origin->body};
  add_node(b, &made);
  return output;
}

static int add_binary_node(builder *b, const laci_op *op, int left, int right, int output) {
  return add_onnx_node(b, op, 2, (int[]){left, right}, NULL, output);
}

/** Adds a DequantizeLinear or QuantizeLinear of one scale, or of a list along an axis. */
static int add_quantize_or_dequantize(builder *b, const laci_op *op, int x,
                                      laci_quantized_operand ports, int output) {
  const laci_attr axis = laci_attr_int("axis", ports.axis);
  const int inputs[] = {x, ports.scale, ports.zero};
  return add_onnx_node(b, op, ports.zero < 0 ? 2 : 3, inputs, &axis, output);
}

static int add_float_cast(builder *b, int x) {
  const laci_attr to = laci_attr_int("to", LAC_DTYPE_F32);
  return add_onnx_node(b, &laci_op_cast, 1, &x, &to, -1);
}

/* ---- Scales and zero points ---- */

/** Is it a scale or zero point of DynamicQuantizeLinear, whose types are known before any shape? */
static bool is_dynamic_scale_or_zero(const builder *b, int value) {
  const int producer = b->graph->values[value].producer;
  const laci_node *node = producer < 0 ? NULL : &b->graph->nodes[producer];
  return node && node->op == &laci_op_dynamic_quantize_linear && node->outputs[0] != value;
}

static int get_rank(const builder *b, int value) {
  return is_dynamic_scale_or_zero(b, value) ? 0 : b->graph->values[value].type.shape.rank;
}

/** Are both values the same numbers, as far as stored tensors tell? -1 is equal to itself. */
static bool has_same_numbers(const builder *b, int one, int other) {
  enum { MOST_BYTES = 16 };
  if (one == other) return true;
  if (one < 0 || other < 0) return false;
  const laci_graph *graph = b->graph;
  const int at = graph->values[one].stored, to = graph->values[other].stored;
  if (at < 0 || to < 0) return false;
  const laci_stored *x = &graph->stored[at], *y = &graph->stored[to];
  if (x->overridable || y->overridable || x->dtype != y->dtype || x->size_bytes != y->size_bytes ||
      x->size_bytes > MOST_BYTES)
    return false;
  laci_acquired_bytes held[2] = {0};
  bool same = !laci_stored_acquire(graph, x, &held[0], NULL) &&
              !laci_stored_acquire(graph, y, &held[1], NULL) &&
              memcmp(held[0].bytes, held[1].bytes, x->size_bytes) == 0;
  laci_bytes_release(&held[0]);
  laci_bytes_release(&held[1]);
  return same;
}

/** Is the value a stored tensor all of whose bits are 0? */
static bool is_stored_zeros(const builder *b, int value) {
  const int at = b->graph->values[value].stored;
  const laci_stored *stored = at < 0 ? NULL : &b->graph->stored[at];
  laci_acquired_bytes held = {0};
  if (!stored || stored->overridable) return false;
  bool zeros = !laci_stored_acquire(b->graph, stored, &held, NULL);
  const uint8_t *bytes = held.bytes;
  for (size_t i = 0; i < stored->size_bytes && zeros; i++) zeros = bytes[i] == 0;
  laci_bytes_release(&held);
  return zeros;
}

/** Returns the operand with its ports replaced by the values that the node reads there. */
static laci_quantized_operand map_ports_to_values(const laci_node *node,
                                                  laci_quantized_operand operand) {
  if (operand.data >= 0) operand.data = node->inputs[operand.data];
  if (operand.scale >= 0) operand.scale = node->inputs[operand.scale];
  if (operand.zero >= 0) operand.zero = node->inputs[operand.zero];
  return operand;
}

/* ---- Which nodes are rewritten ---- */

/** Can DequantizeLinear dequantize the operand: is there one f32 scale, or a list along one
 * axis? */
static bool can_dequantize_linear(const builder *b, laci_quantized_operand o) {
  if (o.scale >= 0) {
    const lac_dtype dtype = b->graph->values[o.scale].type.dtype;
    if (dtype != LAC_DTYPE_F32 && !is_dynamic_scale_or_zero(b, o.scale)) return false;
    if (get_rank(b, o.scale) < 0 || get_rank(b, o.scale) > 1) return false;
  }
  return o.zero < 0 || (get_rank(b, o.zero) >= 0 && get_rank(b, o.zero) <= 1);
}

/** Returns the Cast to f32 that alone reads the integers of a product; NULL: there is none. */
static const laci_node *find_only_cast_to_float(const builder *b, const laci_node *node) {
  const laci_value *y = &b->graph->values[node->outputs[0]];
  if (y->is_output || y->n_readers != 1) return NULL;
  const laci_node *cast = &b->graph->nodes[y->readers[0]];
  const bool is = cast->op == &laci_op_cast && cast->body == node->body &&
                  laci_node_int(cast, "to", 0) == LAC_DTYPE_F32;
  return is ? cast : NULL;
}

/** Is it a product of integers whose zero points are numbers, or a list along a matrix's
 * columns? */
static bool is_rewritable_product(const builder *b, const laci_node *node) {
  const laci_quantized_form *form = node->op->quantized;
  const int a_zero = map_ports_to_values(node, laci_quantized_operand_ports(form, node, 0)).zero;
  const int b_zero = map_ports_to_values(node, laci_quantized_operand_ports(form, node, 1)).zero;
  if (!find_only_cast_to_float(b, node) || (a_zero >= 0 && get_rank(b, a_zero) != 0)) return false;
  if (b_zero < 0 || get_rank(b, b_zero) == 0) return true;
  return form->like == &laci_op_mat_mul && get_rank(b, b_zero) == 1;
}

static bool has_required_scales(const laci_quantized_form *form, const laci_node *node) {
  for (int k = 0; k < laci_quantized_count_operands(form, node); k++) {
    if (laci_quantized_operand_ports(form, node, k).scale >= 0) return true;
  }
  return form->dynamic;
}

enum { MIN_IMAGE_RANK = 3 };

/** Are the channels of the node's images their last axis? */
static bool has_channels_last(const laci_node *node) {
  return laci_node_int(node, "channels_last", 0) != 0 || node->op == &laci_op_ms_nhwc_max_pool;
}

/** Returns the rank of the images of a node whose channels are their last axis, from the images,
 * the weight or the window, as far as shapes are known before inference; -1: not known. */
static int get_image_rank(const builder *b, const laci_node *node) {
  enum { WEIGHT = 3 };
  const int rank = get_rank(b, node->inputs[0]);
  const laci_attr *window = laci_node_attr(node, "kernel_shape");
  if (rank >= 0) return rank;
  if (node->op->quantized && node->op->quantized->like == &laci_op_conv && node->n_inputs > WEIGHT)
    return get_rank(b, node->inputs[WEIGHT]);
  return window && window->kind == LACI_ATTR_INTS ? (int)window->n + 2 : -1;
}

static bool can_rewrite(const builder *b, const laci_node *node) {
  const laci_quantized_form *form = node->op ? node->op->quantized : NULL;
  if (!form || node->n_outputs < 1 || node->outputs[0] < 0) return false;
  if (has_channels_last(node) && get_image_rank(b, node) < MIN_IMAGE_RANK) return false;
  const int n = laci_quantized_count_operands(form, node);
  for (int k = 0; k < n; k++) {
    if (!can_dequantize_linear(
            b, map_ports_to_values(node, laci_quantized_operand_ports(form, node, k))))
      return false;
  }
  if (!has_required_scales(form, node)) return is_rewritable_product(b, node);
  if (laci_quantized_has_result_scale(form, node)) {
    const laci_quantized_operand y = {
        .scale = node->inputs[form->y_scale],
        .zero = form->y_zero < node->n_inputs ? node->inputs[form->y_zero] : -1};
    if (!can_dequantize_linear(b, y)) return false;
  }
  return !form->bias || laci_node_float(node, "alpha", 1) == 1;
}

/* ---- Rewriting ---- */

/** Adds a Transpose that moves the channels of an image from the last axis to axis 1 (first), or
 * back, and returns its output; output -1: a new value. */
static int add_move_of_channels_to(builder *b, int x, int rank, bool first, int output) {
  int64_t *perm = laci_arena_alloc(b->arena, (size_t)rank, sizeof *perm);
  if (!perm) {
    b->failed = true;
    return -1;
  }
  for (int axis = 0; axis < rank; axis++) perm[axis] = first ? axis - 1 : axis + 1;
  perm[0] = 0;
  perm[first ? 1 : rank - 1] = first ? rank - 1 : 1;
  const laci_attr attr = laci_attr_ints("perm", rank, perm);
  return add_onnx_node(b, &laci_op_transpose, 1, &x, &attr, output);
}

static int add_move_of_channels(builder *b, int x, int rank, bool first) {
  return add_move_of_channels_to(b, x, rank, first, -1);
}

/** Adds nodes for the integers minus the zero point, as floats. */
static int add_integers_minus_zero(builder *b, laci_quantized_operand o) {
  const int x = add_float_cast(b, o.data);
  if (o.zero < 0 || is_stored_zeros(b, o.zero)) return x;
  return add_binary_node(b, &laci_op_sub, x, add_float_cast(b, o.zero), -1);
}

/** Returns the floats that an operand stands for. If *steps is set, these still have to be
 * multiplied by the operand's scale, which comes from DynamicQuantizeLinear. */
static int add_floats_of_operand(builder *b, laci_quantized_operand o, bool *steps) {
  const counterpart *t = o.data < b->graph->n_values ? &b->counterparts[o.data] : NULL;
  *steps = false;
  if (t && t->value >= 0 && has_same_numbers(b, t->zero, o.zero)) {
    *steps = t->scale < 0 && o.scale >= 0;
    if (*steps || has_same_numbers(b, t->scale, o.scale)) return t->value;
    *steps = false;
  }
  if (o.scale >= 0) return add_quantize_or_dequantize(b, &laci_op_dequantize_linear, o.data, o, -1);
  const int steps_of_one = add_integers_minus_zero(b, o);
  if (t && t->value < 0) b->counterparts[o.data] = (counterpart){steps_of_one, -1, o.zero, false};
  return steps_of_one;
}

/** Returns the bias as floats: its integers are multiplied by the scales of both operands. */
static int add_floats_of_bias(builder *b, const laci_node *node, int bias) {
  const laci_quantized_form *form = node->op->quantized;
  const laci_quantized_operand x =
      map_ports_to_values(node, laci_quantized_operand_ports(form, node, 0));
  const laci_quantized_operand w =
      map_ports_to_values(node, laci_quantized_operand_ports(form, node, 1));
  const int scale = add_binary_node(b, &laci_op_mul, x.scale, w.scale, -1);
  return add_binary_node(b, &laci_op_mul, add_float_cast(b, bias), scale, -1);
}

/** The operands of a rewritten node, as floats. */
typedef struct float_operands {
  int inputs[LACI_QUANTIZED_OPERANDS];
  int multiplier; /* a scale by which the result is multiplied; -1: none */
} float_operands;

static int add_floats_of_dynamic_operand(builder *b, int x, int *multiplier) {
  const int steps = add_value(b);
  *multiplier = add_value(b);
  if (b->failed) return -1;
  (void)add_onnx_node(b, &laci_op_dynamic_steps, 1, &x, NULL, steps);
  if (b->failed) return -1;
  laci_node *made = &b->nodes[b->n_nodes - 1];
  made->outputs = copy_list(b, (int[]){steps, *multiplier}, 2);
  made->n_outputs = 2;
  return steps;
}

static const int *add_floats_of_all_operands(builder *b, const laci_node *node,
                                             float_operands *to) {
  const laci_quantized_form *form = node->op->quantized;
  const int n = laci_quantized_count_operands(form, node);
  to->multiplier = -1;
  int *inputs = n <= LACI_QUANTIZED_OPERANDS
                    ? to->inputs
                    : laci_arena_alloc(b->arena, (size_t)n, sizeof *inputs);
  if (!inputs) b->failed = true;
  for (int k = 0; k < n && !b->failed; k++) {
    const laci_quantized_operand o =
        map_ports_to_values(node, laci_quantized_operand_ports(form, node, k));
    bool steps = false;
    if (o.data < 0) inputs[k] = -1;
    else if (form->dynamic && k == 0)
      inputs[k] = add_floats_of_dynamic_operand(b, o.data, &to->multiplier);
    else if (form->bias && k == form->bias) inputs[k] = add_floats_of_bias(b, node, o.data);
    else if (o.scale < 0 && o.zero < 0 && has_required_scales(form, node)) inputs[k] = o.data;
    else inputs[k] = add_floats_of_operand(b, o, &steps);
    if (steps && k == 0 && form->like == &laci_op_mat_mul && !form->quantizes)
      to->multiplier = o.scale;
    else if (steps)
      inputs[k] = add_quantize_or_dequantize(b, &laci_op_dequantize_linear, o.data, o, -1);
  }
  return inputs;
}

/** Adds the operator on floats, and returns the value of its output 0: a new one if `new_output`,
 * else that of the node. */
static int add_float_node(builder *b, const laci_node *node, const int *inputs, bool new_output) {
  const laci_quantized_form *form = node->op->quantized;
  laci_node made = laci_quantized_float_node(form, node);
  const int n = laci_quantized_count_operands(form, node);
  made.n_inputs = 0;
  for (int k = 0; k < n; k++) {
    if (inputs[k] >= 0) made.n_inputs = k + 1;
  }
  made.inputs = copy_list(b, inputs, made.n_inputs);
  const int y = new_output ? add_value(b) : node->outputs[0];
  int *outputs = laci_arena_alloc(b->arena, (size_t)node->n_outputs, sizeof *outputs);
  if (!outputs || b->failed) {
    b->failed = true;
    return -1;
  }
  memcpy(outputs, node->outputs, (size_t)node->n_outputs * sizeof *outputs);
  outputs[0] = y;
  made.outputs = outputs;
  add_node(b, &made);
  return y;
}

/** Is 1 / scale an integer, so that floor(1 / scale) is the same? */
static bool has_integer_steps(const builder *b, int scale) {
  const int at = b->graph->values[scale].stored;
  const laci_stored *stored = at < 0 ? NULL : &b->graph->stored[at];
  laci_acquired_bytes held = {0};
  float one = 0;
  if (!stored || stored->overridable || stored->size_bytes != sizeof one) return false;
  if (laci_stored_acquire(b->graph, stored, &held, NULL)) return false;
  memcpy(&one, held.bytes, sizeof one);
  laci_bytes_release(&held);
  return floorf(1 / one) * one == 1;
}

/** Returns the result times floor(1 / scale) * scale, which QuantizeLinear then divides by the
 * scale. */
static int add_floor_of_steps(builder *b, int result, int scale) {
  if (has_integer_steps(b, scale)) return result;
  const int steps = add_onnx_node(b, &laci_op_reciprocal, 1, &scale, NULL, -1);
  const int whole = add_onnx_node(b, &laci_op_floor, 1, &steps, NULL, -1);
  const int factor = add_binary_node(b, &laci_op_mul, whole, scale, -1);
  return add_binary_node(b, &laci_op_mul, result, factor, -1);
}

static void rewrite_node(builder *b, const laci_node *node) {
  const laci_quantized_form *form = node->op->quantized;
  const int y = node->outputs[0];
  float_operands operands;
  const int *inputs = add_floats_of_all_operands(b, node, &operands);
  if (b->failed) return;
  const bool quantizes = laci_quantized_has_result_scale(form, node);
  const bool adds = form->sum && form->sum < node->n_inputs && node->inputs[form->sum] >= 0;
  const int rank = has_channels_last(node) ? get_image_rank(b, node) : 0;
  if (rank > 0) operands.inputs[0] = add_move_of_channels(b, operands.inputs[0], rank, true);
  int result = add_float_node(b, node, inputs, quantizes || adds || operands.multiplier >= 0);
  if (rank > 0) result = add_move_of_channels(b, result, rank, false);
  if (operands.multiplier >= 0)
    result = add_binary_node(b, &laci_op_mul, result, operands.multiplier, adds ? -1 : y);
  if (adds) (void)add_binary_node(b, &laci_op_add, result, node->inputs[form->sum], y);
  if (!quantizes) return;
  if (form->floors_steps) result = add_floor_of_steps(b, result, node->inputs[form->y_scale]);
  const laci_quantized_operand ports = {
      .scale = node->inputs[form->y_scale],
      .zero = form->y_zero < node->n_inputs ? node->inputs[form->y_zero] : -1};
  (void)add_quantize_or_dequantize(b, &laci_op_quantize_linear, result, ports, y);
  b->counterparts[y] = (counterpart){
      .value = add_quantize_or_dequantize(b, &laci_op_dequantize_linear, y, ports, -1),
      .scale = ports.scale,
      .zero = ports.zero};
}

/** Rewrites a DynamicQuantizeLinear node. Products of integers read its scale and its integers as
 * floats (DynamicSteps), so that the bytes need not be computed for them. */
static void rewrite_dynamic_quantize(builder *b, const laci_node *node) {
  int outputs[3] = {-1, -1, -1}, scale = -1;
  memcpy(outputs, node->outputs, (size_t)node->n_outputs * sizeof *outputs);
  const int steps = add_floats_of_dynamic_operand(b, node->inputs[0], &scale);
  if (b->failed) return;
  /* the node DynamicSteps outputs the scale, too, so that the bytes are not computed for it */
  laci_node *made = &b->nodes[b->n_nodes - 1];
  if (outputs[1] >= 0) {
    made->outputs = copy_list(b, (int[]){steps, outputs[1]}, 2);
    outputs[1] = scale;
  }
  laci_node bytes = *node;
  bytes.outputs = copy_list(b, outputs, node->n_outputs);
  add_node(b, &bytes);
  const bool has_zero = node->n_outputs > 2 && node->outputs[2] >= 0;
  if (node->outputs[0] >= 0 && has_zero)
    b->counterparts[node->outputs[0]] =
        (counterpart){.value = steps, .scale = -1, .zero = node->outputs[2]};
}

/* ---- Operators that move elements ---- */

static bool is_element_moving(const laci_node *node) {
  static const laci_op *const movers[] = {
      &laci_op_max_pool,  &laci_op_reshape,        &laci_op_transpose,       &laci_op_squeeze,
      &laci_op_unsqueeze, &laci_op_flatten,        &laci_op_identity,        &laci_op_slice,
      &laci_op_split,     &laci_op_depth_to_space, &laci_op_space_to_depth,  &laci_op_gather,
      &laci_op_expand,    &laci_op_tile,           &laci_op_ms_nhwc_max_pool};
  if (node->op == &laci_op_resize || node->op == &laci_op_upsample)
    return strcmp(laci_node_text(node, "mode", "nearest"), "nearest") == 0;
  for (size_t at = 0; at < sizeof movers / sizeof *movers; at++) {
    if (node->op == movers[at]) return true;
  }
  return false;
}

/** Adds MaxPool for a NhwcMaxPool that reads floats, between two moves of the channels. */
static void add_max_pool_of_channels_last(builder *b, const laci_node *node) {
  const int rank = get_image_rank(b, b->origin);
  laci_node made = *node;
  const int x = add_move_of_channels(b, node->inputs[0], rank, true), y = add_value(b);
  if (b->failed) return;
  made.op = &laci_op_max_pool;
  made.type = made.op->name;
  made.domain = "";
  made.version = OPSET;
  made.inputs = copy_list(b, &x, 1);
  made.outputs = copy_list(b, &y, 1);
  add_node(b, &made);
  (void)add_move_of_channels_to(b, y, rank, false, node->outputs[0]);
}

/** Adds a copy of an operator that only moves elements (is_element_moving), which reads the floats
 * that its input stands for. Does nothing where the input has no counterpart. */
static void add_counterpart_of_move(builder *b, const laci_node *node) {
  const counterpart t = b->counterparts[node->inputs[0]];
  if (t.value < 0 || t.scale < 0) return;
  if (node->op == &laci_op_max_pool && node->n_outputs > 1 && node->outputs[1] >= 0) return;
  if (has_channels_last(node) && get_image_rank(b, node) < MIN_IMAGE_RANK) return;
  laci_node made = *node;
  int *inputs = laci_arena_alloc(b->arena, (size_t)node->n_inputs, sizeof *inputs);
  int *outputs = laci_arena_alloc(b->arena, (size_t)node->n_outputs, sizeof *outputs);
  if (!inputs || !outputs) {
    b->failed = true;
    return;
  }
  memcpy(inputs, node->inputs, (size_t)node->n_inputs * sizeof *inputs);
  inputs[0] = t.value;
  for (int at = 0; at < node->n_outputs; at++) {
    outputs[at] = node->outputs[at] < 0 ? -1 : add_value(b);
    if (node->outputs[at] >= 0)
      b->counterparts[node->outputs[at]] = (counterpart){outputs[at], t.scale, t.zero, true};
  }
  made.inputs = inputs;
  made.outputs = outputs;
  if (node->op == &laci_op_ms_nhwc_max_pool) add_max_pool_of_channels_last(b, &made);
  else add_node(b, &made);
}

/* ---- DequantizeLinear by itself ---- */

/** Is the value stored, or computed from stored values alone? Values more than MOST_DEPTH nodes
 * away from stored ones count as not constant. */
static bool is_constant(const builder *b, int value, int depth) {
  enum { MOST_DEPTH = 8 };
  const laci_value *v = &b->graph->values[value];
  if (v->stored >= 0) return true;
  if (v->producer < 0 || depth == MOST_DEPTH) return false;
  const laci_node *node = &b->graph->nodes[v->producer];
  for (int at = 0; at < node->n_inputs; at++) {
    if (node->inputs[at] >= 0 && !is_constant(b, node->inputs[at], depth + 1)) return false;
  }
  return true;
}

/** Is it a DequantizeLinear of one scale whose integers are computed, but not by the QuantizeLinear
 * that it is fused with? */
static bool is_unfused_dequantize(const builder *b, const laci_node *node) {
  if (node->op != &laci_op_dequantize_linear || node->n_inputs < 2 || node->inputs[0] < 0)
    return false;
  const laci_quantized_operand o = {node->inputs[0], node->inputs[1],
                                    node->n_inputs > 2 ? node->inputs[2] : -1, 0};
  const lac_dtype dtype = b->graph->values[o.data].type.dtype;
  if (dtype != LAC_DTYPE_U8 && dtype != LAC_DTYPE_I8) return false;
  if (laci_node_int(node, "output_dtype", 0) != 0 || laci_node_int(node, "block_size", 0) != 0)
    return false;
  if (!can_dequantize_linear(b, o) || get_rank(b, o.scale) != 0 || is_constant(b, o.data, 0))
    return false;
  int clip;
  if (laci_graph_find_quantizer(b->graph, o.data, &clip) >= 0) return false;
  const int producer = b->graph->values[o.data].producer;
  return producer < 0 || !can_rewrite(b, &b->graph->nodes[producer]);
}

/** Adds nodes for the floats (x - zero) * scale, from the counterpart or from the integers. */
static void rewrite_dequantize(builder *b, const laci_node *node) {
  const int data = node->inputs[0], scale = node->inputs[1];
  const int zero = node->n_inputs > 2 ? node->inputs[2] : -1;
  const counterpart *t = &b->counterparts[data];
  if (t->value >= 0 && has_same_numbers(b, t->zero, zero) && t->rearranged &&
      has_same_numbers(b, t->scale, scale)) {
    (void)add_onnx_node(b, &laci_op_identity, 1, &t->value, NULL, node->outputs[0]);
    return;
  }
  const bool has_steps = t->value >= 0 && t->scale < 0 && has_same_numbers(b, t->zero, zero);
  const int steps =
      has_steps ? t->value
                : add_integers_minus_zero(b, (laci_quantized_operand){data, scale, zero, 0});
  if (!has_steps && t->value < 0) b->counterparts[data] = (counterpart){steps, -1, zero, false};
  (void)add_binary_node(b, &laci_op_mul, steps, scale, node->outputs[0]);
}

/** Is it the Cast that reads a product of integers, where the float form computes that product in
 * floats? */
static bool is_cast_of_float_product(const builder *b, const laci_node *node) {
  if (node->op != &laci_op_cast || node->n_inputs != 1 || node->inputs[0] < 0) return false;
  const int producer = b->graph->values[node->inputs[0]].producer;
  const laci_node *product = producer < 0 ? NULL : &b->graph->nodes[producer];
  return product && can_rewrite(b, product) &&
         !has_required_scales(product->op->quantized, product);
}

static bool is_dynamic_quantize(const builder *b, const laci_node *node) {
  if (node->op != &laci_op_dynamic_quantize_linear || node->n_inputs != 1 || node->inputs[0] < 0)
    return false;
  if (node->n_outputs < 1 || node->n_outputs > 3) return false; /* such a node is refused */
  const lac_dtype dtype = b->graph->values[node->inputs[0]].type.dtype;
  return dtype == LAC_DTYPE_F32 || dtype == LAC_DTYPE_NONE;
}

/* ---- Copies ---- */

/** Returns what the value is a copy of in the body, where it is of integers or stored; else the
 * value itself. */
static int skip_copies(const builder *b, int value, int body) {
  const laci_graph *graph = b->graph;
  if (value < 0 || graph->values[value].producer < 0) return value;
  if (graph->nodes[graph->values[value].producer].body != body) return value;
  const int to = laci_graph_skip_copies(graph, value);
  const laci_value *v = &graph->values[to];
  return laci_is_quantized_integer(graph, to) ||
                 (v->stored >= 0 && !graph->stored[v->stored].overridable)
             ? to
             : value;
}

static bool reads_copies(const builder *b, const laci_node *node) {
  for (int at = 0; at < node->n_inputs; at++) {
    if (skip_copies(b, node->inputs[at], node->body) != node->inputs[at]) return true;
  }
  return false;
}

/** Returns the node, which reads what its inputs are copies of. */
static const laci_node *make_node_without_copies(builder *b, const laci_node *node) {
  if (!reads_copies(b, node)) return node;
  laci_node *made = laci_arena_alloc(b->arena, 1, sizeof *made);
  int *inputs = laci_arena_alloc(b->arena, (size_t)node->n_inputs, sizeof *inputs);
  if (!made || !inputs) {
    b->failed = true;
    return node;
  }
  for (int at = 0; at < node->n_inputs; at++)
    inputs[at] = skip_copies(b, node->inputs[at], node->body);
  *made = *node;
  made->inputs = inputs;
  return made;
}

/* ---- Weights in packed blocks ---- */

enum { N_BITS_DATA, N_BITS_WEIGHT, N_BITS_SCALES, N_BITS_ZEROS, N_BITS_ORDER, N_BITS_BIAS };

/** Is it a MatMulNBits of f32 with a stored weight whose channels are not rearranged (g_idx)? */
static bool is_product_of_blocks(const builder *b, const laci_node *node) {
  if (node->op != &laci_op_ms_mat_mul_n_bits || node->n_inputs <= N_BITS_SCALES) return false;
  if (node->n_inputs > N_BITS_ORDER && node->inputs[N_BITS_ORDER] >= 0) return false;
  for (int port = N_BITS_WEIGHT; port < node->n_inputs && port < N_BITS_ORDER; port++) {
    const int value = node->inputs[port];
    if (value >= 0 && b->graph->values[value].stored < 0) return false;
  }
  return node->inputs[N_BITS_WEIGHT] >= 0 && node->inputs[N_BITS_SCALES] >= 0 &&
         b->graph->values[node->inputs[N_BITS_SCALES]].type.dtype == LAC_DTYPE_F32;
}

/** Adds a product with the weight as floats, which is constant, and the sum with the bias. */
static void rewrite_product_of_blocks(builder *b, const laci_node *node) {
  const int zeros = node->n_inputs > N_BITS_ZEROS ? node->inputs[N_BITS_ZEROS] : -1;
  const int bias = node->n_inputs > N_BITS_BIAS ? node->inputs[N_BITS_BIAS] : -1;
  const int parts[] = {node->inputs[N_BITS_WEIGHT], node->inputs[N_BITS_SCALES], zeros};
  const int rows = add_onnx_node(b, &laci_op_unpack_blocks, zeros < 0 ? 2 : 3, parts, NULL, -1);
  if (b->failed) return;
  b->nodes[b->n_nodes - 1].attrs = node->attrs;
  b->nodes[b->n_nodes - 1].n_attrs = node->n_attrs;
  static const int64_t perm[] = {1, 0};
  const laci_attr attr = laci_attr_ints("perm", 2, perm);
  const int weight = add_onnx_node(b, &laci_op_transpose, 1, &rows, &attr, -1);
  const int y = add_binary_node(b, &laci_op_mat_mul, node->inputs[N_BITS_DATA], weight,
                                bias < 0 ? node->outputs[0] : -1);
  if (bias >= 0) (void)add_binary_node(b, &laci_op_add, y, bias, node->outputs[0]);
}

static void add_node_or_rewrite(builder *b, const laci_node *node) {
  node = make_node_without_copies(b, node);
  b->origin = node;
  const int first = node->n_inputs > 0 ? node->inputs[0] : -1;
  if (is_dynamic_quantize(b, node)) {
    rewrite_dynamic_quantize(b, node);
  } else if (can_rewrite(b, node)) {
    rewrite_node(b, node);
  } else if (is_cast_of_float_product(b, node)) {
    (void)add_onnx_node(b, &laci_op_identity, 1, &first, NULL, node->outputs[0]);
  } else if (is_product_of_blocks(b, node)) {
    rewrite_product_of_blocks(b, node);
  } else if (is_unfused_dequantize(b, node)) {
    rewrite_dequantize(b, node);
  } else {
    add_node(b, node);
    if (first >= 0 && is_element_moving(node)) add_counterpart_of_move(b, node);
  }
}

/* ---- The graph ---- */

/** Calls visit for each value that a node reads, once for each node, in the order of nodes. */
static void visit_reads(const builder *b, int *last,
                        void (*visit)(void *context, int value, int node), void *context) {
  for (size_t v = 0; v < b->n_values; v++) last[v] = -1;
  for (int n = 0; n < (int)b->n_nodes; n++) {
    const laci_node *node = &b->nodes[n];
    for (int at = 0; at < node->n_inputs + node->n_captures; at++) {
      const int v = at < node->n_inputs ? node->inputs[at] : node->captures[at - node->n_inputs];
      if (v < 0 || last[v] == n) continue;
      last[v] = n;
      visit(context, v, n);
    }
  }
}

/** The readers of all values: one list after the other in `all`. */
typedef struct reader_lists {
  laci_value *values;
  size_t *ends; /* [n_values] where the list of each value ends in `all`, as far as it is filled */
  int *all;
} reader_lists;

static void count_reader(void *context, int value, int node) {
  (void)node;
  ((reader_lists *)context)->values[value].n_readers++;
}

static void list_reader(void *context, int value, int node) {
  reader_lists *lists = context;
  lists->all[lists->ends[value]++] = node;
}

/** Fills the producers and readers of all values. */
static void fill_producers_and_readers(builder *b) {
  reader_lists lists = {.values = b->values, .ends = laci_alloc(b->n_values, sizeof *lists.ends)};
  int *last = laci_alloc(b->n_values, sizeof *last);
  size_t total = 0;
  for (int n = 0; n < (int)b->n_nodes; n++) {
    const laci_node *node = &b->nodes[n];
    for (int at = 0; at < node->n_outputs; at++) {
      if (node->outputs[at] >= 0) b->values[node->outputs[at]].producer = n;
    }
  }
  for (size_t v = 0; v < b->n_values; v++) b->values[v].n_readers = 0;
  if (last) visit_reads(b, last, count_reader, &lists);
  for (size_t v = 0; v < b->n_values; v++) {
    if (lists.ends) lists.ends[v] = total;
    total += (size_t)b->values[v].n_readers;
  }
  lists.all = laci_arena_alloc(b->arena, total, sizeof *lists.all);
  if (last && lists.ends && lists.all) {
    visit_reads(b, last, list_reader, &lists);
    for (size_t v = 0; v < b->n_values; v++)
      b->values[v].readers = lists.all + lists.ends[v] - b->values[v].n_readers;
  } else b->failed = true;
  laci_free(lists.ends);
  laci_free(last);
}

static const laci_graph *make_form_graph(builder *b) {
  const laci_graph *graph = b->graph;
  laci_graph *made = laci_arena_alloc(b->arena, 1, sizeof *made);
  laci_node *nodes = laci_arena_alloc(b->arena, b->n_nodes, sizeof *nodes);
  laci_value *values = laci_arena_alloc(b->arena, b->n_values, sizeof *values);
  laci_body *bodies = laci_arena_alloc(b->arena, (size_t)graph->n_bodies, sizeof *bodies);
  if (!made || !nodes || !values || !bodies) return NULL;
  *made = *graph;
  made->nodes = memcpy(nodes, b->nodes, b->n_nodes * sizeof *nodes);
  made->values = memcpy(values, b->values, b->n_values * sizeof *values);
  made->n_nodes = (int)b->n_nodes;
  made->n_values = (int)b->n_values;
  made->bodies = bodies;
  for (int at = 0; at < graph->n_bodies; at++) {
    bodies[at] = graph->bodies[at];
    if (bodies[at].begin >= 0) bodies[at].begin = b->place[bodies[at].begin];
    bodies[at].end = b->place[bodies[at].end];
  }
  return made;
}

static bool init_builder(builder *b) {
  const size_t n = (size_t)b->graph->n_values;
  b->counterparts = laci_alloc(n, sizeof *b->counterparts);
  b->place = laci_alloc((size_t)b->graph->n_nodes, sizeof *b->place);
  b->values = laci_alloc(n, sizeof *b->values);
  if (!b->counterparts || !b->place || !b->values) return false;
  b->n_values = b->value_capacity = n;
  if (n > 0) memcpy(b->values, b->graph->values, n * sizeof *b->values);
  for (size_t v = 0; v < n; v++) b->counterparts[v].value = -1;
  return true;
}

lac_status laci_graph_make_float_form(laci_arena *arena, const laci_graph *graph,
                                      const laci_graph **form, lac_error *err) {
  builder b = {.arena = arena, .graph = graph};
  bool any = false;
  *form = graph;
  for (int n = 0; n < graph->n_nodes && !any; n++) {
    const laci_node *node = &graph->nodes[n];
    any = is_dynamic_quantize(&b, node) || can_rewrite(&b, node) ||
          is_unfused_dequantize(&b, node) || is_product_of_blocks(&b, node) ||
          reads_copies(&b, node);
  }
  if (!any) return LAC_OK;
  b.failed = !init_builder(&b);
  for (int n = 0; n < graph->n_nodes && !b.failed; n++) {
    add_node_or_rewrite(&b, &graph->nodes[n]);
    b.place[n] = (int)b.n_nodes - 1;
  }
  if (!b.failed) fill_producers_and_readers(&b);
  const laci_graph *made = b.failed ? NULL : make_form_graph(&b);
  laci_free(b.counterparts);
  laci_free(b.place);
  laci_free(b.nodes);
  laci_free(b.values);
  if (!made) return laci_fail_memory(err, "the float form of a quantized network");
  *form = made;
  return LAC_OK;
}

/* All nodes into which a node was rewritten have its name, with the same pointer. */
int laci_float_form_find_original_node(const laci_graph *graph, const laci_node *node, int *from) {
  for (int n = 0; n < graph->n_nodes; n++) {
    const int at = (*from + n) % graph->n_nodes;
    if (graph->nodes[at].name == node->name) return *from = at;
  }
  return -1;
}
