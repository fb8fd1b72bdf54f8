/* SPDX-License-Identifier: Apache-2.0
 * ReduceLogSum: the logarithm of the sum over axes. */
#include <math.h>

#include "graph/ops/shared/reduce_in.h"

static double finish_reduction(const laci_reduce_state *state, int64_t n) {
  (void)n;
  return log(state->a);
}

static lac_status eval(laci_eval *eval) {
  static const laci_reducer reducer = {
      .start = {.a = 0}, .step = laci_reduce_add, .end = finish_reduction};
  return laci_reduce_eval(eval, &reducer);
}

const laci_op laci_op_reduce_log_sum = {
    .name = "ReduceLogSum",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"axes", LACI_ATTR_INTS}, {"keepdims", LACI_ATTR_INT},
                                  {"noop_with_empty_axes", LACI_ATTR_INT}),
    .inputs_without_channels = 1u << 1,
    .infer = laci_reduce_infer,
    .eval = eval,
    .couple = laci_reduce_couple_orders};
