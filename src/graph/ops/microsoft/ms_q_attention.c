/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.QAttention: Attention (ms_attention.c) whose input and weight are quantized
 * (shared/integer_in.h). */
#include "graph/ops.h"
#include "graph/ops/shared/integer_in.h"
#include "graph/ops/shared/microsoft_in.h"

static const laci_quantized_form form = {
    .like = &laci_op_ms_attention,
    .n_operands = 5,
    .operands = {{0, 3, 6, 0}, {1, 4, 7, -1}, {2, -1, -1, 0}, {5, -1, -1, 0}, {8, -1, -1, 0}}};

const laci_op laci_op_ms_q_attention = {
    .name = "QAttention",
    .domain = LACI_MICROSOFT,
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes =
        LACI_ATTRIBUTES({"do_rotary", LACI_ATTR_INT}, {"mask_filter_value", LACI_ATTR_FLOAT},
                        {"num_heads", LACI_ATTR_INT}, {"past_present_share_buffer", LACI_ATTR_INT},
                        {"scale", LACI_ATTR_FLOAT}, {"unidirectional", LACI_ATTR_INT}),
    .quantized = &form,
    .infer = laci_quantized_infer,
    .eval = laci_quantized_eval,
    .couple = laci_quantized_couple_orders};
