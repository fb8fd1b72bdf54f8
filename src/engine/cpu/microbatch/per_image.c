/* SPDX-License-Identifier: Apache-2.0
 * Implements per_image.h: a table of operators and of the elements that they combine. */
#include "engine/cpu/microbatch/per_image.h"

#include "graph/ops.h"

typedef enum node_kind {
  NO,          /* the node combines images, or its operator has not been examined */
  BY_ELEMENT,  /* combines elements of operands, which are broadcast */
  BY_WINDOW,   /* combines pixels of operand 0; the other operands are constants */
  BY_LINE,     /* scales or rounds channels by constants */
  BY_CHANNELS, /* joins channels */
} node_kind;

static const struct {
  const laci_op *op;
  node_kind kind;
} kinds[] = {
    {&laci_op_conv, BY_WINDOW},
    {&laci_op_max_pool, BY_WINDOW},
    {&laci_op_average_pool, BY_WINDOW},
    {&laci_op_global_average_pool, BY_WINDOW},
    {&laci_op_global_max_pool, BY_WINDOW},
    {&laci_op_pad, BY_WINDOW},
    {&laci_op_reduce_mean, BY_WINDOW},
    {&laci_op_transpose, BY_WINDOW},
    {&laci_op_batch_normalization, BY_LINE},
    {&laci_op_quantize_linear, BY_LINE},
    {&laci_op_dequantize_linear, BY_LINE},
    {&laci_op_clip, BY_LINE},
    {&laci_op_cast, BY_ELEMENT},
    {&laci_op_relu, BY_ELEMENT},
    {&laci_op_leaky_relu, BY_ELEMENT},
    {&laci_op_prelu, BY_ELEMENT},
    {&laci_op_elu, BY_ELEMENT},
    {&laci_op_sigmoid, BY_ELEMENT},
    {&laci_op_hard_sigmoid, BY_ELEMENT},
    {&laci_op_hard_swish, BY_ELEMENT},
    {&laci_op_swish, BY_ELEMENT},
    {&laci_op_mish, BY_ELEMENT},
    {&laci_op_tanh, BY_ELEMENT},
    {&laci_op_gelu, BY_ELEMENT},
    {&laci_op_identity, BY_ELEMENT},
    {&laci_op_add, BY_ELEMENT},
    {&laci_op_sub, BY_ELEMENT},
    {&laci_op_mul, BY_ELEMENT},
    {&laci_op_div, BY_ELEMENT},
    {&laci_op_concat, BY_CHANNELS},
};

static node_kind find_node_kind(const laci_node *node) {
  for (size_t at = 0; at < sizeof kinds / sizeof *kinds; at++) {
    if (kinds[at].op == node->op) return kinds[at].kind;
  }
  return NO;
}

/** Does the value hold one image for each index of axis 0? */
static bool has_one_row_per_image(const laci_cpu_plan *plan, int value, int64_t batch) {
  const laci_shape *shape = laci_plan_shape(plan, value);
  return !laci_plan_is_constant(plan, value) && shape->rank >= 2 && shape->dims[0] == batch &&
         laci_shape_count(shape) > 0;
}

/** Is the value a constant that is broadcast to all images of a result of that rank? */
static bool is_constant_of_all_images(const laci_cpu_plan *plan, int value, int rank) {
  const laci_shape *shape = laci_plan_shape(plan, value);
  return laci_plan_is_constant(plan, value) &&
         (shape->rank < rank || (shape->rank == rank && shape->dims[0] == 1));
}

static bool is_elementwise_per_image(const laci_cpu_plan *plan, const laci_node *node,
                                     int64_t batch) {
  const int rank = laci_plan_shape(plan, node->outputs[0])->rank;
  for (int at = 0; at < node->n_inputs; at++) {
    const int value = node->inputs[at];
    const bool images = value >= 0 && laci_plan_shape(plan, value)->rank == rank &&
                        has_one_row_per_image(plan, value, batch);
    if (value >= 0 && !images && !is_constant_of_all_images(plan, value, rank)) return false;
  }
  return true;
}

static bool has_constant_other_inputs(const laci_cpu_plan *plan, const laci_node *node) {
  for (int at = 1; at < node->n_inputs; at++) {
    if (node->inputs[at] >= 0 && !laci_plan_is_constant(plan, node->inputs[at])) return false;
  }
  return true;
}

static bool is_window_per_image(laci_cpu_plan *plan, const laci_node *node) {
  laci_pads pads;
  bool axes[LACI_MAX_RANK];
  size_t n = 0;
  const int rank = laci_plan_shape(plan, node->inputs[0])->rank;
  if (node->op == &laci_op_pad) {
    return laci_plan_read_zero_pads(plan, node, &pads) && pads.before[0] == 0 && pads.after[0] == 0;
  }
  if (node->op == &laci_op_transpose) {
    const int64_t *perm = laci_node_ints(node, "perm", &n);
    return n > 0 && perm[0] == 0;
  }
  if (node->op != &laci_op_reduce_mean) return true;
  return laci_plan_read_reduced_axes(plan, node, rank, axes) && !axes[0] &&
         laci_node_int(node, "keepdims", 1) == 1;
}

/** Are the node's constants one number for each channel, or one for all? */
static bool is_per_channel(const laci_node *node) {
  if (node->op == &laci_op_batch_normalization) return laci_plan_is_inference_norm(node);
  return laci_node_int(node, "axis", 1) == 1 && laci_node_int(node, "block_size", 0) == 0;
}

static bool is_per_channel_and_image(const laci_cpu_plan *plan, const laci_node *node,
                                     int64_t batch) {
  const int rank = laci_plan_shape(plan, node->outputs[0])->rank;
  const int64_t axis = laci_node_int(node, "axis", 1);
  for (int at = 0; at < node->n_inputs; at++) {
    if (node->inputs[at] < 0 || !has_one_row_per_image(plan, node->inputs[at], batch)) return false;
  }
  return axis != 0 && axis != -rank;
}

bool laci_node_is_per_image(laci_cpu_plan *plan, const laci_node *node, int64_t batch) {
  if (node->body != 0 || node->n_captures > 0 || node->n_inputs < 1 || node->inputs[0] < 0) {
    return false;
  }
  for (int at = 0; at < node->n_outputs; at++) {
    if (at > 0 && node->outputs[at] >= 0) return false;
  }
  if (node->n_outputs < 1 || node->outputs[0] < 0 ||
      !has_one_row_per_image(plan, node->outputs[0], batch)) {
    return false;
  }
  switch (find_node_kind(node)) {
    case BY_ELEMENT: return is_elementwise_per_image(plan, node, batch);
    case BY_CHANNELS: return is_per_channel_and_image(plan, node, batch);
    case BY_WINDOW:
      return has_one_row_per_image(plan, node->inputs[0], batch) &&
             has_constant_other_inputs(plan, node) && is_window_per_image(plan, node);
    case BY_LINE:
      return has_one_row_per_image(plan, node->inputs[0], batch) &&
             has_constant_other_inputs(plan, node) && is_per_channel(node);
    default: return false;
  }
}
