/* SPDX-License-Identifier: Apache-2.0
 * LessOrEqual: true where a <= b, broadcast; never where one is NaN. */
#include "graph/ops/shared/op_in.h"

static int64_t compute_integer(int64_t a, int64_t b) { return a <= b; }

static uint64_t compute_unsigned(uint64_t a, uint64_t b) { return a <= b; }

static int64_t compare_doubles(double a, double b) { return a <= b; }

static lac_status eval(laci_eval *eval) {
  static const laci_binary operation = {
      .i = compute_integer, .u = compute_unsigned, .test = compare_doubles};
  return laci_eval_binary(eval, &operation);
}

const laci_op laci_op_less_or_equal = {.name = "LessOrEqual",
                                       .role = LACI_ROLE_PASS_THROUGH,
                                       .discontinuous = true,
                                       .is_fold = true,
                                       .symbol_safe = true,
                                       .infer = laci_infer_broadcast_bool,
                                       .eval = eval,
                                       .couple = laci_couple_all_inputs_broadcast};
