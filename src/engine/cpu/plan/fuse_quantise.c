/* SPDX-License-Identifier: Apache-2.0
 * QuantizeLinear and the DequantizeLinear behind it, as one fused node: bytes that nobody else
 * reads never come to be. Next: lower/fake_quantise.c. */
#include "engine/cpu/plan/plan.h"
#include "graph/ops.h"
#include "kernel/pointwise/fake_quantise.h"

/* One scale and one zero point of f32 for all. */
static bool read_parameters(laci_cpu_plan *plan, const laci_node *node, double *scale,
                            double *zero) {
  *zero = 0;
  if (laci_node_int(node, "block_size", 0) != 0) return false;
  if (plan->values[node->inputs[1]].type.dtype != LAC_DTYPE_F32) return false;
  if (!laci_plan_scalar(plan, node->inputs[1], scale)) return false;
  return !laci_plan_has_input(node, 2) || laci_plan_scalar(plan, node->inputs[2], zero);
}

static bool is_f32(const laci_cpu_plan *plan, int value) {
  return plan->values[value].type.dtype == LAC_DTYPE_F32 && !laci_plan_is_constant(plan, value);
}

bool laci_find_quantise(laci_cpu_plan *plan, int dequantise, laci_match *match) {
  const laci_node *node = &plan->graph->nodes[dequantise];
  double scale, zero, other_scale, other_zero;
  if (node->op != &laci_op_dequantize_linear) return false;
  const int before = laci_plan_producer(plan, node->inputs[0]);
  if (before < 0 || plan->graph->nodes[before].op != &laci_op_quantize_linear) return false;
  if (laci_plan_only_reader(plan, node->inputs[0]) != dequantise) return false;
  const laci_node *quantise = &plan->graph->nodes[before];
  const lac_dtype dtype = plan->values[quantise->outputs[0]].type.dtype;
  if (dtype != LAC_DTYPE_U8 && dtype != LAC_DTYPE_I8) return false;
  if (!is_f32(plan, quantise->inputs[0]) || !is_f32(plan, node->outputs[0])) return false;
  if (!read_parameters(plan, quantise, &scale, &zero) ||
      !read_parameters(plan, node, &other_scale, &other_zero)) {
    return false;
  }
  if (scale != other_scale || zero != other_zero) return false;
  laci_fake_quantised *q = laci_plan_new(plan, 1, sizeof *q);
  if (!q) return false;
  const double least = dtype == LAC_DTYPE_U8 ? 0 : INT8_MIN, most = least + UINT8_MAX;
  *q = (laci_fake_quantised){(float)scale, (float)(least - zero), (float)(most - zero),
                             (float)-zero};
  match->n_nodes = 1;
  match->nodes[0] = before;
  match->fused = (laci_fused){
      .pattern = LACI_PATTERN_QUANTISE, .details = q, .n_reads = 1, .reads = {quantise->inputs[0]}};
  return true;
}
