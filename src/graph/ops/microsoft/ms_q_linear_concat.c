/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.QLinearConcat: quantized inputs one after the other along an axis, each with a
 * scale and a zero point, quantized again with those that come first (shared/integer_in.h). */
#include "graph/ops.h"
#include "graph/ops/shared/integer_in.h"
#include "graph/ops/shared/microsoft_in.h"

static const laci_quantized_form form = {
    .like = &laci_op_concat, .first = 2, .quantizes = true, .y_scale = 0, .y_zero = 1};

const laci_op laci_op_ms_q_linear_concat = {.name = "QLinearConcat",
                                            .domain = LACI_MICROSOFT,
                                            .role = LACI_ROLE_PASS_THROUGH,
                                            .attributes = LACI_ATTRIBUTES({"axis", LACI_ATTR_INT}),
                                            .quantized = &form,
                                            .infer = laci_quantized_infer,
                                            .eval = laci_quantized_eval,
                                            .couple = laci_quantized_couple_orders};
