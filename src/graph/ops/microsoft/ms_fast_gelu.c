/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.FastGelu: y = gelu(x + bias), the bias along the last axis, and optional;
 *       gelu(x) = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))). */
#include <math.h>

#include "graph/ops/shared/microsoft_in.h"

static lac_status infer(laci_infer *infer) { return laci_bias_activation_infer(infer, 1); }

static double compute_double(double x, double bias) {
  double sum = x + bias;
  return sum / 2 * (1 + tanh(M_SQRT2 / sqrt(M_PI) * (sum + 0.044715 * sum * sum * sum)));
}

static double compute_without_bias(double x, const void *context) {
  (void)context;
  return compute_double(x, 0);
}

static lac_status eval(laci_eval *eval) {
  if (laci_operand(eval, 1)) return laci_eval_binary(eval, &(laci_binary){.f = compute_double});
  return laci_eval_unary(eval, &(laci_unary){.f = compute_without_bias}, NULL);
}

const laci_op laci_op_ms_fast_gelu = {.name = "FastGelu",
                                      .domain = LACI_MICROSOFT,
                                      .role = LACI_ROLE_INFER,
                                      .infer = infer,
                                      .eval = eval,
                                      .couple = laci_couple_all_inputs_broadcast};
