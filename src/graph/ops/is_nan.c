/* SPDX-License-Identifier: Apache-2.0
 * IsNaN: true where x is not a number. */
#include <math.h>

#include "graph/ops/shared/op_in.h"

static int64_t test_double(double x, const void *context) {
  (void)context;
  return isnan(x) != 0;
}

static lac_status eval(laci_eval *eval) {
  return laci_eval_unary(eval, &(laci_unary){.test = test_double}, NULL);
}

const laci_op laci_op_is_nan = {.name = "IsNaN",
                                .role = LACI_ROLE_PASS_THROUGH,
                                .infer = laci_infer_bool_like_input,
                                .eval = eval,
                                .couple = laci_couple_first_input};
