/* SPDX-License-Identifier: Apache-2.0
 * Mish: y = x * tanh(log(1 + e^x)), element by element. */
#include <math.h>

#include "graph/ops/shared/op_in.h"

static double compute_double(double x, const void *context) {
  (void)context;
  double soft = x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
  return x * tanh(soft);
}

static lac_status eval(laci_eval *eval) {
  return laci_eval_unary(eval, &(laci_unary){.f = compute_double}, NULL);
}

static double derivative(const laci_node *node, double x) {
  (void)node;
  double soft = tanh(x > 0 ? x + log1p(exp(-x)) : log1p(exp(x))), gate = 1 / (1 + exp(-x));
  return soft + x * gate * (1 - soft * soft);
}

const laci_op laci_op_mish = {.name = "Mish",
                              .role = LACI_ROLE_PASS_THROUGH,
                              .infer = laci_infer_same_type,
                              .eval = eval,
                              .couple = laci_couple_first_input,
                              .slope = derivative};
