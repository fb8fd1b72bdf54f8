/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.DynamicQuantizeMatMul: A, quantized as DynamicQuantizeLinear does, times a
 * quantized matrix, as floats, plus a bias (shared/integer_in.h). */
#include "graph/ops/shared/integer_in.h"
#include "graph/ops/shared/microsoft_in.h"

static const laci_quantized_form form = {.like = &laci_op_mat_mul,
                                         .n_operands = 2,
                                         .operands = {{0, -1, -1, -2}, {1, 2, 3, -1}},
                                         .sum = 4,
                                         .dynamic = true};

static int find_weight_axes(const laci_graph *graph, const laci_node *node,
                            laci_weight_axes axes[2]) {
  if (graph->values[node->inputs[form.operands[1].data]].type.shape.rank != 2) return 0;
  return laci_quantized_find_weight_axes(node, 1, axes);
}

const laci_op laci_op_ms_dynamic_quantize_mat_mul = {.name = "DynamicQuantizeMatMul",
                                                     .domain = LACI_MICROSOFT,
                                                     .role = LACI_ROLE_ALLOW,
                                                     .discontinuous = true,
                                                     .byte_weights = true,
                                                     .weights = find_weight_axes,
                                                     .quantized = &form,
                                                     .infer = laci_quantized_infer,
                                                     .eval = laci_quantized_eval,
                                                     .couple = laci_quantized_couple_product};
