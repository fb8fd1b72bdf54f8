/* SPDX-License-Identifier: Apache-2.0
 * ArgMin: the index of the smallest element along an axis. See arg_max.c. */
#include "graph/ops/shared/arg_in.h"

static lac_status eval(laci_eval *eval) { return laci_arg_max_min_eval(eval, false); }

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  return laci_arg_max_min_couple_orders(node, c, "order matters to ArgMin");
}

const laci_op laci_op_arg_min = {
    .name = "ArgMin",
    .role = LACI_ROLE_PASS_THROUGH,
    .discontinuous = true,
    .attributes = LACI_ATTRIBUTES({"axis", LACI_ATTR_INT}, {"keepdims", LACI_ATTR_INT},
                                  {"select_last_index", LACI_ATTR_INT}),
    .infer = laci_arg_max_min_infer,
    .eval = eval,
    .couple = couple_channel_orders};
