/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.QLinearGlobalAveragePool: GlobalAveragePool of quantized numbers, quantized again
 * (shared/integer_in.h). Channels are axis 1, or the last axis where
 * channels_last says so; these stay in place. */
#include "graph/ops.h"
#include "graph/ops/shared/channels_last_in.h"
#include "graph/ops/shared/integer_in.h"
#include "graph/ops/shared/microsoft_in.h"

static const laci_quantized_form form = {.like = &laci_op_global_average_pool,
                                         .n_operands = 1,
                                         .operands = {{0, 1, 2, 0}},
                                         .quantizes = true,
                                         .y_scale = 3,
                                         .y_zero = 4};

const laci_op laci_op_ms_q_linear_global_average_pool = {
    .name = "QLinearGlobalAveragePool",
    .domain = LACI_MICROSOFT,
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"channels_last", LACI_ATTR_INT}),
    .quantized = &form,
    .infer = laci_quantized_pool_infer,
    .eval = laci_quantized_pool_eval,
    .couple = laci_quantized_pool_couple};
