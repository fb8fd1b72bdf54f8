/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.Gelu: y = x / 2 * (1 + erf(x / sqrt 2)). */
#include <math.h>

#include "graph/ops/shared/microsoft_in.h"

static double compute_double(double x, const void *context) {
  (void)context;
  return x / 2 * (1 + erf(x * M_SQRT1_2));
}

static lac_status eval(laci_eval *eval) {
  return laci_eval_unary(eval, &(laci_unary){.f = compute_double}, NULL);
}

const laci_op laci_op_ms_gelu = {.name = "Gelu",
                                 .domain = LACI_MICROSOFT,
                                 .role = LACI_ROLE_PASS_THROUGH,
                                 .infer = laci_infer_same_type,
                                 .eval = eval,
                                 .couple = laci_couple_first_input};
