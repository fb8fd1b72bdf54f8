/* SPDX-License-Identifier: Apache-2.0
 * Not: y = !x of booleans. */
#include "graph/ops/shared/op_in.h"

static int64_t compute_integer(int64_t x, const void *context) {
  (void)context;
  return x == 0;
}

static lac_status eval(laci_eval *eval) {
  return laci_eval_unary(eval, &(laci_unary){.i = compute_integer}, NULL);
}

const laci_op laci_op_not = {.name = "Not",
                             .role = LACI_ROLE_PASS_THROUGH,
                             .is_fold = true,
                             .symbol_safe = true,
                             .infer = laci_infer_same_type,
                             .eval = eval,
                             .couple = laci_couple_first_input};
