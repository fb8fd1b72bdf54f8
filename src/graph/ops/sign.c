/* SPDX-License-Identifier: Apache-2.0
 * Sign: -1, 0 or 1; NaN stays NaN. */
#include <math.h>

#include "graph/gradient.h"
#include "graph/ops/shared/op_in.h"

static double compute_double(double x, const void *context) {
  (void)context;
  return isnan(x) ? x : (double)((x > 0) - (x < 0));
}

static int64_t compute_integer(int64_t x, const void *context) {
  (void)context;
  return (x > 0) - (x < 0);
}

static uint64_t compute_unsigned(uint64_t x, const void *context) {
  (void)context;
  return x > 0;
}

static lac_status eval(laci_eval *eval) {
  return laci_eval_unary(
      eval, &(laci_unary){.f = compute_double, .i = compute_integer, .u = compute_unsigned}, NULL);
}

const laci_op laci_op_sign = {.name = "Sign",
                              .role = LACI_ROLE_PASS_THROUGH,
                              .discontinuous = true,
                              .infer = laci_infer_same_type,
                              .eval = eval,
                              .couple = laci_couple_first_input,
                              .gradient = laci_gradient_contribute_zero};
