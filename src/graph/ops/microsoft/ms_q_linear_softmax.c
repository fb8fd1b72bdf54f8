/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.QLinearSoftmax: Softmax of quantized numbers, quantized again
 * (shared/integer_in.h). The attribute opset says which version of Softmax. ONNX Runtime, whose
 * operator it is, multiplies by floor(1 / scale) where it quantizes. */
#include "graph/ops.h"
#include "graph/ops/shared/integer_in.h"
#include "graph/ops/shared/microsoft_in.h"

static const laci_quantized_form form = {.like = &laci_op_softmax,
                                         .n_operands = 1,
                                         .operands = {{0, 1, 2, 0}},
                                         .quantizes = true,
                                         .y_scale = 3,
                                         .y_zero = 4,
                                         .floors_steps = true};

const laci_op laci_op_ms_q_linear_softmax = {
    .name = "QLinearSoftmax",
    .domain = LACI_MICROSOFT,
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"axis", LACI_ATTR_INT}, {"opset", LACI_ATTR_INT}),
    .quantized = &form,
    .infer = laci_quantized_infer,
    .eval = laci_quantized_eval,
    .couple = laci_quantized_couple_orders};
