/* SPDX-License-Identifier: Apache-2.0
 * Div: y = a / b, broadcast; integers are cut towards zero.
 * A zero integer divisor has no defined result: it gives 0 here, never a trap. */
#include "graph/ops/op_in.h"

static double value(double a, double b) { return a / b; }

static int64_t value_integer(int64_t a, int64_t b) {
  if (b == 0) return 0;
  return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static lac_status eval(laci_eval *eval) {
  static const laci_binary operation = {
      .f = value, .i = value_integer, .neutral = LACI_NEUTRAL_ONE_RIGHT, .basic = LACI_BASIC_DIV};
  return laci_eval_binary(eval, &operation);
}

const laci_op laci_op_div = {.name = "Div",
                             .role = LACI_ROLE_CLEAR,
                             .is_fold = true,
                             .symbol_safe = true,
                             .infer = laci_infer_broadcast,
                             .eval = eval,
                             .couple = laci_couple_nary};
