/* SPDX-License-Identifier: Apache-2.0
 * QuantizeLinear and the DequantizeLinear after it, as one fused node: int8 values that no other
 * node reads are never stored. Quantizers write such a pair after each node, also after those that
 * only move or pick elements of a value that was quantized in the same way. Next:
 * lower/fake_quantize.c. */
#include "engine/cpu/plan/plan.h"
#include "graph/op.h"
#include "graph/ops.h"
#include "kernel/pointwise/fake_quantize.h"

/* Reads the scale and zero point: one f32 scale and one zero point for the whole tensor, and a
 * quotient computed in f32. False: the node has other parameters. */
static bool read_scale_and_zero_point(laci_cpu_plan *plan, const laci_node *node, double *scale,
                                      double *zero) {
  *zero = 0;
  if (laci_node_int(node, "block_size", 0) != 0) return false;
  if (laci_node_int(node, "precision", LAC_DTYPE_F32) != LAC_DTYPE_F32) return false;
  if (plan->values[node->inputs[1]].type.dtype != LAC_DTYPE_F32) return false;
  if (!laci_plan_read_scalar(plan, node->inputs[1], scale)) return false;
  return !laci_plan_has_input(node, 2) || laci_plan_read_scalar(plan, node->inputs[2], zero);
}

bool laci_plan_is_same_quantization(laci_cpu_plan *plan, const laci_node *a, const laci_node *b) {
  double scale, zero, other_scale, other_zero;
  return read_scale_and_zero_point(plan, a, &scale, &zero) &&
         read_scale_and_zero_point(plan, b, &other_scale, &other_zero) && scale == other_scale &&
         zero == other_zero;
}

static bool is_f32(const laci_cpu_plan *plan, int value) {
  return plan->values[value].type.dtype == LAC_DTYPE_F32 && !laci_plan_is_constant(plan, value);
}

/* ---- Several readers of the same bytes, as some exporters write them ---- */

/** Do both DequantizeLinear nodes compute the same floats from the same bytes, with the same
 * scale? */
static bool is_same_dequantize(laci_cpu_plan *plan, int first, int other) {
  const laci_node *a = &plan->graph->nodes[first], *b = &plan->graph->nodes[other];
  return a->op == b->op && a->inputs[0] == b->inputs[0] && is_f32(plan, b->outputs[0]) &&
         laci_plan_is_same_quantization(plan, a, b);
}

/** Do all readers of the bytes that the node reads compute the same floats, and is none of them
 * fused already? */
static bool has_only_same_dequantizes(laci_cpu_plan *plan, int dequantize) {
  const int bytes = plan->graph->nodes[dequantize].inputs[0];
  const laci_value *v = &plan->graph->values[bytes];
  int n = 0;
  for (int at = 0; at < v->n_readers; at++) {
    const int reader = v->readers[at];
    if (!plan->computed[reader]) continue;
    if (laci_plan_is_fused(plan, reader) || !is_same_dequantize(plan, dequantize, reader))
      return false;
    n++;
  }
  return n == laci_plan_count_uses(plan, bytes);
}

bool laci_find_repeated_dequantize(laci_cpu_plan *plan, int dequantize, laci_match *match) {
  const laci_node *node = &plan->graph->nodes[dequantize];
  if (node->op != &laci_op_dequantize_linear) return false;
  const laci_value *v = &plan->graph->values[node->inputs[0]];
  for (int at = 0; at < v->n_readers; at++) {
    const int first = v->readers[at];
    if (!plan->computed[first] || plan->fused[first].pattern != LACI_PATTERN_QUANTIZE) continue;
    if (!is_same_dequantize(plan, first, dequantize)) continue;
    match->fused = (laci_fused){
        .pattern = LACI_PATTERN_DUPLICATE, .n_reads = 1, .reads = {plan->fused[first].output}};
    return true;
  }
  return false;
}

void laci_finish_repeated_dequantize(laci_cpu_plan *plan, laci_fused *fused) {
  plan->values[fused->reads[0]].n_uses++;
}

/* ---- The pair ---- */

bool laci_find_quantize_pair(laci_cpu_plan *plan, int dequantize, laci_match *match) {
  const laci_node *node = &plan->graph->nodes[dequantize];
  double scale, zero;
  if (node->op != &laci_op_dequantize_linear) return false;
  const int before = laci_plan_producer(plan, node->inputs[0]);
  if (before < 0 || plan->graph->nodes[before].op != &laci_op_quantize_linear) return false;
  if (!has_only_same_dequantizes(plan, dequantize)) return false;
  const laci_node *quantize = &plan->graph->nodes[before];
  const lac_dtype dtype = plan->values[quantize->outputs[0]].type.dtype;
  if (dtype != LAC_DTYPE_U8 && dtype != LAC_DTYPE_I8) return false;
  if (!is_f32(plan, quantize->inputs[0]) || !laci_plan_is_same_quantization(plan, quantize, node))
    return false;
  if (!read_scale_and_zero_point(plan, quantize, &scale, &zero)) return false;
  laci_fake_quantized *q = laci_plan_alloc(plan, 1, sizeof *q);
  if (!q) return false;
  const double least = dtype == LAC_DTYPE_U8 ? 0 : INT8_MIN, most = least + UINT8_MAX;
  *q = (laci_fake_quantized){(float)scale, (float)(least - zero), (float)(most - zero)};
  match->n_nodes = 1;
  match->nodes[0] = before;
  match->fused = (laci_fused){
      .pattern = LACI_PATTERN_QUANTIZE, .details = q, .n_reads = 1, .reads = {quantize->inputs[0]}};
  return true;
}

/* ---- Numbers that are whole already ---- */

/** Are the results of the node elements of its first input, or of all inputs (Concat), or zeros? */
static bool picks_elements(const laci_node *node) {
  if (node->op == &laci_op_relu || node->op == &laci_op_max_pool) return true;
  return node->op->moves_data && node->op != &laci_op_pad && node->op != &laci_op_constant_of_shape;
}

static bool is_quantized_at_depth(const laci_cpu_plan *plan, int value,
                                  const laci_fake_quantized *q, int depth) {
  const int producer = value < 0 ? -1 : plan->graph->values[value].producer;
  if (producer < 0 || depth == 0 || !plan->computed[producer]) return false;
  const laci_fused *fused = &plan->fused[producer];
  if (fused->pattern == LACI_PATTERN_DUPLICATE)
    return is_quantized_at_depth(plan, fused->reads[0], q, depth - 1);
  if (fused->pattern == LACI_PATTERN_QUANTIZE) {
    const laci_fake_quantized *of = fused->details;
    return of->scale == q->scale && of->low == q->low && of->high == q->high;
  }
  const laci_node *node = &plan->graph->nodes[producer];
  const bool alone = !fused->pattern && !fused->scale && !fused->shift && fused->n_posts == 0;
  if (!alone || plan->joined[producer] != producer || !picks_elements(node)) return false;
  const int n = node->op == &laci_op_concat ? node->n_inputs : 1;
  for (int at = 0; at < n; at++) {
    if (!is_quantized_at_depth(plan, node->inputs[at], q, depth - 1)) return false;
  }
  return true;
}

bool laci_plan_is_quantized_as(const laci_cpu_plan *plan, int value, const laci_fake_quantized *q) {
  enum { DEPTH = 16 };
  return is_quantized_at_depth(plan, value, q, DEPTH);
}
