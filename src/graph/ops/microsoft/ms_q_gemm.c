/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.QGemm: alpha * (op(A) * op(B) + C) of quantized operands; C is in units of both
 * scales. The result is quantized where its scale is given, else it is floats
 * (shared/integer_in.h). */
#include "graph/ops.h"
#include "graph/ops/shared/integer_in.h"
#include "graph/ops/shared/microsoft_in.h"

static const laci_quantized_form form = {.like = &laci_op_gemm,
                                         .n_operands = 3,
                                         .operands = {{0, 1, 2, 0}, {3, 4, 5, 1}, {6, -1, -1, 0}},
                                         .bias = 2,
                                         .quantizes = true,
                                         .y_scale = 7,
                                         .y_zero = 8};

static int find_weight_axes(const laci_graph *graph, const laci_node *node,
                            laci_weight_axes axes[2]) {
  (void)graph;
  return laci_quantized_find_weight_axes(node, laci_node_int(node, "transB", 0) ? 0 : 1, axes);
}

const laci_op laci_op_ms_q_gemm = {
    .name = "QGemm",
    .domain = LACI_MICROSOFT,
    .role = LACI_ROLE_ALLOW,
    .byte_weights = true,
    .weights = find_weight_axes,
    .attributes = LACI_ATTRIBUTES({"alpha", LACI_ATTR_FLOAT}, {"transA", LACI_ATTR_INT},
                                  {"transB", LACI_ATTR_INT}),
    .quantized = &form,
    .infer = laci_quantized_infer,
    .eval = laci_quantized_eval,
    .couple = laci_quantized_couple_product};
