/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.QLinearWhere: where a condition holds the first of two quantized operands, else the
 * second, quantized again (shared/integer_in.h). */
#include "graph/ops.h"
#include "graph/ops/shared/integer_in.h"
#include "graph/ops/shared/microsoft_in.h"

static const laci_quantized_form form = {.like = &laci_op_where,
                                         .n_operands = 3,
                                         .operands = {{0, -1, -1, 0}, {1, 2, 3, 0}, {4, 5, 6, 0}},
                                         .quantizes = true,
                                         .y_scale = 7,
                                         .y_zero = 8};

const laci_op laci_op_ms_q_linear_where = {.name = "QLinearWhere",
                                           .domain = LACI_MICROSOFT,
                                           .role = LACI_ROLE_PASS_THROUGH,
                                           .quantized = &form,
                                           .infer = laci_quantized_infer,
                                           .eval = laci_quantized_eval,
                                           .couple = laci_quantized_couple_orders};
