/* SPDX-License-Identifier: Apache-2.0
 * LpPool: (sum |x|^p)^(1/p) under the window. */
#include <math.h>

#include "graph/ops/shared/pool_in.h"

static void add_element(laci_pool_state *state, double x, int64_t at) {
  (void)at;
  state->value += pow(fabs(x), state->parameter);
}

static double finish_window(const laci_pool_state *state) {
  return pow(state->value, 1 / state->parameter);
}

static lac_status eval(laci_eval *eval) {
  laci_pooling pooling = {.start = {.parameter = (double)laci_node_int(eval->node, "p", 2)},
                          .step = add_element,
                          .end = finish_window};
  return laci_pooling_eval(eval, &pooling, NULL);
}

const laci_op laci_op_lp_pool = {
    .name = "LpPool",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"auto_pad", LACI_ATTR_TEXT}, {"ceil_mode", LACI_ATTR_INT},
                                  {"dilations", LACI_ATTR_INTS}, {"kernel_shape", LACI_ATTR_INTS},
                                  {"p", LACI_ATTR_INT}, {"pads", LACI_ATTR_INTS},
                                  {"strides", LACI_ATTR_INTS}),
    .infer = laci_pooling_infer,
    .eval = eval,
    .couple = laci_pooling_couple_orders};
