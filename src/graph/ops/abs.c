/* SPDX-License-Identifier: Apache-2.0
 * Abs: y = |x|, element by element. */
#include <math.h>

#include "graph/ops/shared/op_in.h"

static double compute_double(double x, const void *context) {
  (void)context;
  return fabs(x);
}

static int64_t compute_integer(int64_t x, const void *context) {
  (void)context;
  return x < 0 ? (int64_t)(0 - (uint64_t)x) : x;
}

static uint64_t compute_unsigned(uint64_t x, const void *context) {
  (void)context;
  return x;
}

static lac_status eval(laci_eval *eval) {
  return laci_eval_unary(
      eval, &(laci_unary){.f = compute_double, .i = compute_integer, .u = compute_unsigned}, NULL);
}

static double derivative(const laci_node *node, double x) {
  (void)node;
  return x > 0 ? 1 : x < 0 ? -1 : 0;
}

const laci_op laci_op_abs = {.name = "Abs",
                             .role = LACI_ROLE_PASS_THROUGH,
                             .is_fold = true,
                             .symbol_safe = true,
                             .infer = laci_infer_same_type,
                             .eval = eval,
                             .couple = laci_couple_first_input,
                             .slope = derivative};
