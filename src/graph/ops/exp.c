/* SPDX-License-Identifier: Apache-2.0
 * Exp: y = e^x, element by element. */
#include <math.h>

#include "graph/ops/shared/op_in.h"

static double compute_double(double x, const void *context) {
  (void)context;
  return exp(x);
}

static lac_status eval(laci_eval *eval) {
  return laci_eval_unary(eval, &(laci_unary){.f = compute_double}, NULL);
}

static double derivative(const laci_node *node, double x) {
  (void)node;
  return exp(x);
}

const laci_op laci_op_exp = {.name = "Exp",
                             .role = LACI_ROLE_PASS_THROUGH,
                             .infer = laci_infer_same_type,
                             .eval = eval,
                             .couple = laci_couple_first_input,
                             .slope = derivative};
