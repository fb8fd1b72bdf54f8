/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.BiasGelu: y = gelu(x + bias), the bias along the last axis;
 *       gelu(x) = x / 2 * (1 + erf(x / sqrt 2)). */
#include <math.h>

#include "graph/ops/shared/microsoft_in.h"

static lac_status infer(laci_infer *infer) { return laci_bias_activation_infer(infer, 2); }

static double compute_double(double x, double bias) {
  double sum = x + bias;
  return sum / 2 * (1 + erf(sum * M_SQRT1_2));
}

static lac_status eval(laci_eval *eval) {
  return laci_eval_binary(eval, &(laci_binary){.f = compute_double});
}

const laci_op laci_op_ms_bias_gelu = {.name = "BiasGelu",
                                      .domain = LACI_MICROSOFT,
                                      .role = LACI_ROLE_INFER,
                                      .infer = infer,
                                      .eval = eval,
                                      .couple = laci_couple_all_inputs_broadcast};
