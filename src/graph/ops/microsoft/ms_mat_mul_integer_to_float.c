/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.MatMulIntegerToFloat: the product of two quantized matrices, as floats, plus a bias
 * (shared/integer_in.h). */
#include "graph/ops/shared/integer_in.h"
#include "graph/ops/shared/microsoft_in.h"

static const laci_quantized_form form = {.like = &laci_op_mat_mul,
                                         .n_operands = 2,
                                         .operands = {{0, 2, 4, -2}, {1, 3, 5, -1}},
                                         .sum = 6};

static int find_weight_axes(const laci_graph *graph, const laci_node *node,
                            laci_weight_axes axes[2]) {
  if (graph->values[node->inputs[form.operands[1].data]].type.shape.rank != 2) return 0;
  return laci_quantized_find_weight_axes(node, 1, axes);
}

const laci_op laci_op_ms_mat_mul_integer_to_float = {.name = "MatMulIntegerToFloat",
                                                     .domain = LACI_MICROSOFT,
                                                     .role = LACI_ROLE_ALLOW,
                                                     .byte_weights = true,
                                                     .weights = find_weight_axes,
                                                     .quantized = &form,
                                                     .infer = laci_quantized_infer,
                                                     .eval = laci_quantized_eval,
                                                     .couple = laci_quantized_couple_product};
