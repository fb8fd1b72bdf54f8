/* SPDX-License-Identifier: Apache-2.0
 * QuantizeLinear and the DequantizeLinear after it, as one fused node: int8 values that no other
 * node reads are never stored. A value that was quantized with the same parameters before is not
 * changed: no step is needed. Next: lower/fake_quantize.c. */
#include <math.h>

#include "engine/cpu/plan/quantized.h"
#include "graph/copies.h"
#include "graph/graph.h"
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
    if (!plan->computed[first] || !laci_plan_is_quantize_pair(&plan->fused[first])) continue;
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

/** Finds the QuantizeLinear node, and the Clip between it and the DequantizeLinear, if there is
 * one (*clip -1: none). False: there are other nodes, or other readers of the integers, apart from
 * DequantizeLinear nodes that compute the same floats. */
static bool find_nodes_of_pair(laci_cpu_plan *plan, int dequantize, int *quantize, int *clip) {
  const laci_graph *graph = plan->graph;
  const laci_node *node = &graph->nodes[dequantize];
  *clip = -1;
  if (node->op != &laci_op_dequantize_linear) return false;
  int before = laci_plan_find_producer(plan, node->inputs[0]);
  if (before >= 0 && laci_is_clip_of_integers(graph, &graph->nodes[before])) {
    *clip = before;
    before = laci_plan_find_producer(plan, graph->nodes[before].inputs[0]);
    if (before < 0 || laci_plan_count_uses(plan, graph->nodes[before].outputs[0]) != 1)
      return false;
  }
  if (before < 0 || graph->nodes[before].op != &laci_op_quantize_linear) return false;
  *quantize = before;
  return has_only_same_dequantizes(plan, dequantize);
}

/** Narrows the range of the integers to that of a Clip. False: its bounds are not known, or leave
 * nothing. */
static bool narrow_to_clip(laci_cpu_plan *plan, int clip, double *least, double *most) {
  if (clip < 0) return true;
  const laci_node *node = &plan->graph->nodes[clip];
  double low = *least, high = *most;
  if (laci_plan_has_input(node, 1) && !laci_plan_read_scalar(plan, node->inputs[1], &low))
    return false;
  if (laci_plan_has_input(node, 2) && !laci_plan_read_scalar(plan, node->inputs[2], &high))
    return false;
  *least = fmax(*least, low);
  *most = fmin(*most, high);
  return *least < *most;
}

/** Finds the pair's first nodes, and its scale and bounds in *q. False: it is no pair of one scale
 * and 8-bit integers, or a Clip leaves out the zero point. */
static bool read_pair(laci_cpu_plan *plan, int dequantize, laci_match *match,
                      laci_fake_quantized *q) {
  double scale, zero;
  int before, clip;
  if (!find_nodes_of_pair(plan, dequantize, &before, &clip)) return false;
  const laci_node *node = &plan->graph->nodes[dequantize];
  const laci_node *quantize = &plan->graph->nodes[before];
  const lac_dtype dtype = plan->values[quantize->outputs[0]].type.dtype;
  if (dtype != LAC_DTYPE_U8 && dtype != LAC_DTYPE_I8) return false;
  if (!is_f32(plan, quantize->inputs[0]) || !laci_plan_is_same_quantization(plan, quantize, node))
    return false;
  if (!read_scale_and_zero_point(plan, quantize, &scale, &zero)) return false;
  double least = dtype == LAC_DTYPE_U8 ? 0 : INT8_MIN, most = least + UINT8_MAX;
  if (!narrow_to_clip(plan, clip, &least, &most) || zero < least || zero > most) return false;
  *q = (laci_fake_quantized){(float)scale, (float)(least - zero), (float)(most - zero)};
  match->n_nodes = 0;
  match->nodes[match->n_nodes++] = before;
  if (clip >= 0) match->nodes[match->n_nodes++] = clip;
  return true;
}

/** Does quantizing by q twice give the same floats as quantizing once? Not if the scale is 0,
 * infinite or subnormal. */
static bool is_idempotent(const laci_fake_quantized *q) {
  return isnormal(q->scale) && q->scale > 0;
}

bool laci_find_quantize_pair(laci_cpu_plan *plan, int dequantize, laci_match *match) {
  laci_fake_quantized q;
  if (!read_pair(plan, dequantize, match, &q)) return false;
  const laci_node *quantize = &plan->graph->nodes[match->nodes[0]];
  const laci_fake_quantized *have = laci_plan_quantization_of(plan, quantize->inputs[0]);
  const bool again = have && laci_plan_has_same_scale_and_bounds(have, &q) && is_idempotent(&q);
  laci_fake_quantized *details = again ? NULL : laci_plan_alloc(plan, 1, sizeof *details);
  if (!again && !details) return false;
  if (details) *details = q;
  match->fused = (laci_fused){.pattern = again ? LACI_PATTERN_DUPLICATE : LACI_PATTERN_QUANTIZE,
                              .details = again ? have : details,
                              .n_reads = 1,
                              .reads = {quantize->inputs[0]}};
  return true;
}
