/* SPDX-License-Identifier: Apache-2.0
 * Neg: y = -x, element by element. */
#include "graph/ops/shared/op_in.h"

static double compute_double(double x, const void *context) {
  (void)context;
  return -x;
}

static int64_t compute_integer(int64_t x, const void *context) {
  (void)context;
  return (int64_t)(0 - (uint64_t)x);
}

static lac_status eval(laci_eval *eval) {
  return laci_eval_unary(eval, &(laci_unary){.f = compute_double, .i = compute_integer}, NULL);
}

static double derivative(const laci_node *node, double x) {
  (void)node;
  (void)x;
  return -1;
}

const laci_op laci_op_neg = {.name = "Neg",
                             .role = LACI_ROLE_PASS_THROUGH,
                             .is_fold = true,
                             .symbol_safe = true,
                             .infer = laci_infer_same_type,
                             .eval = eval,
                             .couple = laci_couple_first_input,
                             .slope = derivative};
