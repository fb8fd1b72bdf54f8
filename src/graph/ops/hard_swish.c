/* SPDX-License-Identifier: Apache-2.0
 * HardSwish: y = x * clamp(x / 6 + 1/2, 0, 1), element by element. */
#include "graph/ops/shared/op_in.h"

static double compute_double(double x, const void *context) {
  (void)context;
  double gate = x / 6 + 0.5;
  return x * (gate < 0 ? 0 : gate > 1 ? 1 : gate);
}

static lac_status eval(laci_eval *eval) {
  return laci_eval_unary(eval, &(laci_unary){.f = compute_double}, NULL);
}

static double derivative(const laci_node *node, double x) {
  (void)node;
  return x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + 0.5;
}

const laci_op laci_op_hard_swish = {.name = "HardSwish",
                                    .role = LACI_ROLE_PASS_THROUGH,
                                    .infer = laci_infer_same_type,
                                    .eval = eval,
                                    .couple = laci_couple_first_input,
                                    .slope = derivative};
