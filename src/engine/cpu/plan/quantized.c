/* SPDX-License-Identifier: Apache-2.0
 * Follows a value back to the quantization whose results its elements are. */
#include "engine/cpu/plan/quantized.h"

#include <string.h>

#include "graph/op.h"
#include "graph/ops.h"

/** Does a Pad add elements of its input, or zeros? */
static bool pads_with_elements_or_zeros(const laci_node *node) {
  const bool inputs = node->version >= 11 || node->version == 0;
  if (strcmp(laci_node_text(node, "mode", "constant"), "constant") != 0) return true;
  return inputs ? !laci_plan_has_input(node, 2) : laci_node_float(node, "value", 0) == 0;
}

/** Are all results of a Resize or Upsample elements of its input? */
static bool is_resize_to_nearest(const laci_node *node) {
  const char *where = laci_node_text(node, "coordinate_transformation_mode", "");
  return strcmp(laci_node_text(node, "mode", "nearest"), "nearest") == 0 &&
         strcmp(where, "tf_crop_and_resize") != 0;
}

/** Are all results of the node elements of its first input, or zeros? */
static bool selects_input_elements(const laci_cpu_plan *plan, const laci_node *node) {
  if (node->op == &laci_op_max_pool) return !laci_plan_window_may_be_all_padding(plan, node);
  if (node->op == &laci_op_pad) return pads_with_elements_or_zeros(node);
  if (node->op == &laci_op_resize || node->op == &laci_op_upsample)
    return is_resize_to_nearest(node);
  if (node->op == &laci_op_relu || node->op == &laci_op_depth_to_space ||
      node->op == &laci_op_space_to_depth)
    return true;
  return node->op && node->op->moves_data && node->op != &laci_op_constant_of_shape;
}

/** Returns the fused node that computes the value and is its last node; NULL: there is none. */
static const laci_fused *find_producing_fused(const laci_cpu_plan *plan, int value) {
  const int node = value < 0 ? -1 : plan->graph->values[value].producer;
  const laci_fused *fused = node < 0 || !plan->computed[node] ? NULL : &plan->fused[node];
  return fused && fused->output >= 0 && fused->n_posts == 0 ? fused : NULL;
}

int laci_plan_skip_duplicates(const laci_cpu_plan *plan, int value) {
  const laci_fused *fused = find_producing_fused(plan, value);
  while (fused && fused->pattern == LACI_PATTERN_DUPLICATE) {
    value = fused->reads[0];
    fused = find_producing_fused(plan, value);
  }
  return value;
}

static const laci_fake_quantized *find_quantization_of_value(const laci_cpu_plan *plan, int value,
                                                             int depth);

/** Returns the quantization that all inputs of a Concat have in common; NULL: there is none. */
static const laci_fake_quantized *find_common_quantization(const laci_cpu_plan *plan,
                                                           const laci_node *concat, int depth) {
  const laci_fake_quantized *first = find_quantization_of_value(plan, concat->inputs[0], depth);
  for (int at = 1; at < concat->n_inputs && first; at++) {
    const laci_fake_quantized *other = find_quantization_of_value(plan, concat->inputs[at], depth);
    if (!other || !laci_plan_has_same_scale_and_bounds(first, other)) first = NULL;
  }
  return first;
}

static const laci_fake_quantized *find_quantization_of_value(const laci_cpu_plan *plan, int value,
                                                             int depth) {
  for (; depth > 0; depth--) {
    const laci_fused *fused = find_producing_fused(plan, value);
    if (!fused) return NULL;
    const laci_node *node = &plan->graph->nodes[fused->node];
    if (fused->pattern == LACI_PATTERN_QUANTIZE) return fused->details;
    if (fused->pattern == LACI_PATTERN_TABLE)
      return ((const laci_table_pattern *)fused->details)->to;
    const bool duplicate = fused->pattern == LACI_PATTERN_DUPLICATE;
    if (!fused->pattern && node->op == &laci_op_concat)
      return find_common_quantization(plan, node, depth - 1);
    if (!duplicate && (fused->pattern || !selects_input_elements(plan, node))) return NULL;
    value = duplicate ? fused->reads[0] : node->inputs[0];
  }
  return NULL;
}

const laci_fake_quantized *laci_plan_quantization_of(const laci_cpu_plan *plan, int value) {
  enum { DEPTH = 16 };
  return find_quantization_of_value(plan, value, DEPTH);
}
