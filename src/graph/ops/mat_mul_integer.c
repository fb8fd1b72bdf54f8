/* SPDX-License-Identifier: Apache-2.0
 * MatMulInteger: the product of integers minus their zero points (shared/integer_in.h). */
#include "graph/ops/shared/integer_in.h"

static const laci_quantized_form form = {
    .like = &laci_op_mat_mul, .n_operands = 2, .operands = {{0, -1, 2, -2}, {1, -1, 3, -1}}};

static int find_weight_axes(const laci_graph *graph, const laci_node *node,
                            laci_weight_axes axes[2]) {
  if (graph->values[node->inputs[form.operands[1].data]].type.shape.rank != 2) return 0;
  return laci_quantized_find_weight_axes(node, 1, axes);
}

const laci_op laci_op_mat_mul_integer = {.name = "MatMulInteger",
                                         .role = LACI_ROLE_ALLOW,
                                         .byte_weights = true,
                                         .weights = find_weight_axes,
                                         .quantized = &form,
                                         .infer = laci_integer_product_infer,
                                         .eval = laci_integer_product_eval,
                                         .couple = laci_quantized_couple_product};
