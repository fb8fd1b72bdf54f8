/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.QLinearAveragePool: AveragePool of quantized numbers, quantized again
 * (shared/integer_in.h). Channels are axis 1, or the last axis where
 * channels_last says so; these stay in place. */
#include "graph/ops.h"
#include "graph/ops/shared/channels_last_in.h"
#include "graph/ops/shared/integer_in.h"
#include "graph/ops/shared/microsoft_in.h"

static const laci_quantized_form form = {.like = &laci_op_average_pool,
                                         .n_operands = 1,
                                         .operands = {{0, 1, 2, 0}},
                                         .quantizes = true,
                                         .y_scale = 3,
                                         .y_zero = 4};

const laci_op laci_op_ms_q_linear_average_pool = {
    .name = "QLinearAveragePool",
    .domain = LACI_MICROSOFT,
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES(
        {"auto_pad", LACI_ATTR_TEXT}, {"ceil_mode", LACI_ATTR_INT},
        {"channels_last", LACI_ATTR_INT}, {"count_include_pad", LACI_ATTR_INT},
        {"kernel_shape", LACI_ATTR_INTS}, {"pads", LACI_ATTR_INTS}, {"strides", LACI_ATTR_INTS}),
    .quantized = &form,
    .infer = laci_quantized_pool_infer,
    .eval = laci_quantized_pool_eval,
    .couple = laci_quantized_pool_couple};
