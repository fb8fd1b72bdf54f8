/* SPDX-License-Identifier: Apache-2.0
 * CumProd (opset 26): running products along an axis; see cum_sum.c. */
#include "graph/ops/shared/cumulative_in.h"

static lac_status eval(laci_eval *eval) { return laci_cumulative_eval(eval, true); }

const laci_op laci_op_cum_prod = {
    .name = "CumProd",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"exclusive", LACI_ATTR_INT}, {"reverse", LACI_ATTR_INT}),
    .inputs_without_channels = 1u << 1,
    .infer = laci_cumulative_infer,
    .eval = eval,
    .couple = laci_cumulative_couple_orders};
