/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.QLinearAdd: the sum of two quantized operands, quantized again
 * (shared/integer_in.h). */
#include "graph/ops.h"
#include "graph/ops/shared/integer_in.h"
#include "graph/ops/shared/microsoft_in.h"

static const laci_quantized_form form = {.like = &laci_op_add,
                                         .n_operands = 2,
                                         .operands = {{0, 1, 2, 0}, {3, 4, 5, 0}},
                                         .quantizes = true,
                                         .y_scale = 6,
                                         .y_zero = 7};

const laci_op laci_op_ms_q_linear_add = {.name = "QLinearAdd",
                                         .domain = LACI_MICROSOFT,
                                         .role = LACI_ROLE_PASS_THROUGH,
                                         .quantized = &form,
                                         .infer = laci_quantized_infer,
                                         .eval = laci_quantized_eval,
                                         .couple = laci_quantized_couple_orders};
