/* SPDX-License-Identifier: Apache-2.0
 * QLinearMatMul: the product of two quantized operands, quantized again (shared/integer_in.h). */
#include "graph/ops/shared/integer_in.h"

static const laci_quantized_form form = {.like = &laci_op_mat_mul,
                                         .n_operands = 2,
                                         .operands = {{0, 1, 2, -2}, {3, 4, 5, -1}},
                                         .quantizes = true,
                                         .y_scale = 6,
                                         .y_zero = 7};

static int find_weight_axes(const laci_graph *graph, const laci_node *node,
                            laci_weight_axes axes[2]) {
  if (graph->values[node->inputs[form.operands[1].data]].type.shape.rank != 2) return 0;
  return laci_quantized_find_weight_axes(node, 1, axes);
}

const laci_op laci_op_q_linear_mat_mul = {.name = "QLinearMatMul",
                                          .role = LACI_ROLE_ALLOW,
                                          .byte_weights = true,
                                          .weights = find_weight_axes,
                                          .quantized = &form,
                                          .infer = laci_integer_product_infer,
                                          .eval = laci_integer_product_eval,
                                          .couple = laci_quantized_couple_product};
