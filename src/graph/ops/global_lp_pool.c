/* SPDX-License-Identifier: Apache-2.0
 * GlobalLpPool: (sum |x|^p)^(1/p) over all positions of each channel.
 *
 * p is stored in the second number of the reduction's state, so the common code need not know of
 * it. */
#include <math.h>

#include "graph/ops/shared/reduce_in.h"

static void add_element(laci_reduce_state *state, double x) { state->a += pow(fabs(x), state->b); }

static double finish_reduction(const laci_reduce_state *state, int64_t n) {
  (void)n;
  return pow(state->a, 1 / state->b);
}

static lac_status eval(laci_eval *eval) {
  laci_reducer reducer = {.start = {0, (double)laci_node_int(eval->node, "p", 2)},
                          .step = add_element,
                          .end = finish_reduction};
  return laci_global_pool_eval(eval, &reducer);
}

const laci_op laci_op_global_lp_pool = {.name = "GlobalLpPool",
                                        .role = LACI_ROLE_PASS_THROUGH,
                                        .attributes = LACI_ATTRIBUTES({"p", LACI_ATTR_INT}),
                                        .infer = laci_global_pool_infer,
                                        .eval = eval,
                                        .couple = laci_global_pool_couple_orders};
