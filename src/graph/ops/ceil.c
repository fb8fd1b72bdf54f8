/* SPDX-License-Identifier: Apache-2.0
 * Ceil: rounds up to the next integer. Inference evaluates it, for exporters use it in size
 * arithmetic. */
#include <math.h>

#include "graph/gradient.h"
#include "graph/ops/shared/op_in.h"

static double compute_double(double x, const void *context) {
  (void)context;
  return ceil(x);
}

static lac_status eval(laci_eval *eval) {
  return laci_eval_unary(eval, &(laci_unary){.f = compute_double}, NULL);
}

const laci_op laci_op_ceil = {.name = "Ceil",
                              .role = LACI_ROLE_PASS_THROUGH,
                              .discontinuous = true,
                              .is_fold = true,
                              .symbol_safe = true,
                              .infer = laci_infer_same_type,
                              .eval = eval,
                              .couple = laci_couple_first_input,
                              .gradient = laci_gradient_contribute_zero};
