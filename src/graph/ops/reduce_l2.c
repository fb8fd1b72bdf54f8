/* SPDX-License-Identifier: Apache-2.0
 * ReduceL2: the square root of the sum of squares over axes. */
#include <math.h>

#include "graph/ops/reduce_in.h"

static void step(laci_reduce_state *state, double x) { state->a += x * x; }

static double end(const laci_reduce_state *state, int64_t n) {
  (void)n;
  return sqrt(state->a);
}

static lac_status eval(laci_eval *eval) {
  static const laci_reducer reducer = {.start = {.a = 0}, .step = step, .end = end};
  return laci_reduce_eval(eval, &reducer);
}

const laci_op laci_op_reduce_l2 = {.name = "ReduceL2",
                                   .role = LACI_ROLE_CLEAR,
                                   .infer = laci_reduce_infer,
                                   .eval = eval,
                                   .couple = laci_reduce_couple};
