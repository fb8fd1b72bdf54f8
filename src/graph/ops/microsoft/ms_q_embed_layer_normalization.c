/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.QEmbedLayerNormalization: EmbedLayerNormalization
 * (ms_embed_layer_normalization.c) with quantized tables (shared/integer_in.h). */
#include "graph/ops.h"
#include "graph/ops/shared/integer_in.h"
#include "graph/ops/shared/microsoft_in.h"

static const laci_quantized_form form = {.like = &laci_op_ms_embed_layer_normalization,
                                         .n_operands = 8,
                                         .operands = {{0, -1, -1, 0},
                                                      {1, -1, -1, 0},
                                                      {2, 8, 13, 0},
                                                      {3, 9, 14, 0},
                                                      {4, 10, 15, 0},
                                                      {5, 11, 16, 0},
                                                      {6, 12, 17, 0},
                                                      {7, -1, -1, 0}}};

const laci_op laci_op_ms_q_embed_layer_normalization = {
    .name = "QEmbedLayerNormalization",
    .domain = LACI_MICROSOFT,
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"epsilon", LACI_ATTR_FLOAT}),
    .quantized = &form,
    .infer = laci_quantized_infer,
    .eval = laci_quantized_eval,
    .couple = laci_quantized_couple_orders};
