/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.SkipSimplifiedLayerNormalization: s = x + skip + bias, y = s / sqrt(mean s^2 +
 * epsilon) * gamma over the last axis. Inputs x, skip, gamma, bias (may be absent); outputs y,
 * mean (never filled), 1 / sqrt(mean s^2 + epsilon), s. */
#include "graph/ops/shared/microsoft_in.h"

static const laci_skip_norm norm = {
    .scale = 2, .shift = LACI_NO_PORT, .bias = 3, .mean = 1, .inverse = 2, .sum = 3};

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 3, 4);
  return st ? st : laci_skip_norm_infer(infer, &norm);
}

static lac_status eval(laci_eval *eval) { return laci_skip_norm_eval(eval, &norm); }

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph, (void)node;
  return laci_skip_norm_couple_orders(c, &norm);
}

const laci_op laci_op_ms_skip_simplified_layer_normalization = {
    .name = "SkipSimplifiedLayerNormalization",
    .domain = LACI_MICROSOFT,
    .role = LACI_ROLE_INFER,
    .attributes = LACI_ATTRIBUTES({"epsilon", LACI_ATTR_FLOAT}),
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};
