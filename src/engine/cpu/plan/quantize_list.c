/* SPDX-License-Identifier: Apache-2.0
 * Quantizations that are no bytes of one scale: of up to 16 bits, or with a scale for each channel.
 * A QuantizeLinear and the DequantizeLinear after it are one fused node here, too. Next:
 * lower/quantize_list.c. */
#include <math.h>

#include "engine/cpu/plan/quantized.h"
#include "graph/ops.h"
#include "tensor/buf.h"

/** Returns zero point k: element k of the list, or its only element. zeros NULL: all are 0. */
static double zero_point_at(const laci_buf *zeros, int64_t k) {
  return zeros ? laci_buf_get_f(zeros, zeros->count == 1 ? 0 : k) : 0;
}

/** Sets n and inner for scales along the node's axis. False: they do not fit the operand. */
static bool set_places(const laci_cpu_plan *plan, const laci_node *node, int64_t n_scales,
                       laci_quantize_list *list) {
  const laci_shape *x = laci_plan_shape(plan, node->inputs[0]);
  *list = (laci_quantize_list){.n = n_scales, .inner = laci_shape_count(x)};
  if (n_scales == 1) return true;
  int64_t axis = laci_node_int(node, "axis", 1);
  if (axis < 0) axis += x->rank;
  if (axis < 0 || axis >= x->rank || x->dims[axis] != n_scales) return false;
  list->inner = laci_shape_count_range(x, (int)axis + 1, x->rank);
  return true;
}

bool laci_plan_read_quantize_list(laci_cpu_plan *plan, const laci_node *node, lac_dtype integers,
                                  laci_quantize_list *list) {
  int64_t least, most;
  if (laci_node_int(node, "block_size", 0) != 0 || !laci_dtype_is_integer(integers)) return false;
  if (laci_node_int(node, "precision", LAC_DTYPE_F32) != LAC_DTYPE_F32) return false;
  if (plan->values[node->inputs[1]].type.dtype != LAC_DTYPE_F32) return false;
  if (!laci_plan_is_constant(plan, node->inputs[1])) return false;
  const bool has_zeros = laci_plan_has_input(node, 2);
  if (has_zeros && !laci_plan_is_constant(plan, node->inputs[2])) return false;
  laci_int_get_range(integers, &least, &most);
  if (most - least > UINT16_MAX || most <= least) return false;
  const int64_t n = laci_shape_count(laci_plan_shape(plan, node->inputs[1]));
  if (n < 1 || !set_places(plan, node, n, list)) return false;
  const float *scales = laci_plan_constant_floats(plan, node->inputs[1]);
  laci_buf *zeros = has_zeros ? laci_plan_copy_constant(plan, node->inputs[2]) : NULL;
  const bool fits = !has_zeros || (zeros && zeros->i && (zeros->count == 1 || zeros->count == n));
  laci_fake_quantized *each = laci_plan_alloc(plan, (size_t)n, sizeof *each);
  const bool read = fits && scales && each;
  for (int64_t k = 0; k < n && read; k++) {
    const double zero = zero_point_at(zeros, k);
    each[k] = (laci_fake_quantized){scales[k], (float)((double)least - zero),
                                    (float)((double)most - zero)};
  }
  list->each = each;
  laci_buf_destroy(zeros);
  return read;
}

static bool has_same_lists(const laci_quantize_list *a, const laci_quantize_list *b) {
  bool same = a->n == b->n && a->inner == b->inner;
  for (int64_t k = 0; k < a->n && same; k++)
    same = laci_plan_has_same_scale_and_bounds(&a->each[k], &b->each[k]);
  return same;
}

bool laci_find_quantize_list_pair(laci_cpu_plan *plan, int dequantize, laci_match *match) {
  const laci_graph *graph = plan->graph;
  const laci_node *node = &graph->nodes[dequantize];
  laci_quantize_list there, again;
  if (node->op != &laci_op_dequantize_linear) return false;
  const int before = laci_plan_find_producer(plan, node->inputs[0]);
  if (before < 0 || graph->nodes[before].op != &laci_op_quantize_linear) return false;
  if (laci_plan_count_uses(plan, node->inputs[0]) != 1) return false;
  const laci_node *quantize = &graph->nodes[before];
  const lac_dtype integers = plan->values[node->inputs[0]].type.dtype;
  if (plan->values[quantize->inputs[0]].type.dtype != LAC_DTYPE_F32 ||
      plan->values[node->outputs[0]].type.dtype != LAC_DTYPE_F32 ||
      laci_plan_is_constant(plan, quantize->inputs[0]))
    return false;
  if (!laci_plan_read_quantize_list(plan, quantize, integers, &there) ||
      !laci_plan_read_quantize_list(plan, node, integers, &again) ||
      !has_same_lists(&there, &again))
    return false;
  laci_quantize_list *details = laci_plan_alloc(plan, 1, sizeof *details);
  if (!details) return false;
  *details = there;
  match->n_nodes = 1;
  match->nodes[0] = before;
  match->fused = (laci_fused){.pattern = LACI_PATTERN_QUANTIZE_LIST,
                              .details = details,
                              .n_reads = 1,
                              .reads = {quantize->inputs[0]}};
  return true;
}
