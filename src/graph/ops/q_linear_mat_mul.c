/* SPDX-License-Identifier: Apache-2.0
 * QLinearMatMul: the product of two quantized operands, quantized again (shared/integer_in.h). */
#include "graph/ops/shared/integer_in.h"

static const laci_integer_ports ports = {.a = 0,
                                         .a_scale = 1,
                                         .a_zero = 2,
                                         .b = 3,
                                         .b_scale = 4,
                                         .b_zero = 5,
                                         .y_scale = 6,
                                         .y_zero = 7,
                                         .bias = -1,
                                         .a_axis = -2,
                                         .b_axis = -1,
                                         .y_axis = -1};

static lac_status infer(laci_infer *infer) {
  return laci_integer_infer(infer, &laci_op_mat_mul, &ports);
}

static lac_status eval(laci_eval *eval) {
  return laci_integer_eval(eval, &laci_op_mat_mul, &ports);
}

static lac_status couple_axes(const laci_graph *graph, const laci_node *node, laci_coupling *c) {
  return laci_integer_couple(graph, node, c, &laci_op_mat_mul, &ports);
}

static int find_weight_axes(const laci_graph *graph, const laci_node *node,
                            laci_weight_axes axes[2]) {
  if (graph->values[node->inputs[ports.b]].type.shape.rank != 2) return 0;
  return laci_integer_weights(node, &ports, 1, axes);
}

const laci_op laci_op_q_linear_mat_mul = {.name = "QLinearMatMul",
                                          .role = LACI_ROLE_ALLOW,
                                          .byte_weights = true,
                                          .weights = find_weight_axes,
                                          .infer = infer,
                                          .eval = eval,
                                          .couple = couple_axes};
