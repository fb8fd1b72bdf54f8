/* SPDX-License-Identifier: Apache-2.0
 * PRelu: y = x where x >= 0, else slope * x; the slope is broadcast to x.
 * The slope is a parameter that follows the channels of x. */
#include "graph/ops/op_in.h"

static double value(double a, double b) { return a < 0 ? a * b : a; }

static int64_t value_integer(int64_t a, int64_t b) {
  return a < 0 ? (int64_t)((uint64_t)a * (uint64_t)b) : a;
}

static lac_status eval(laci_eval *eval) {
  static const laci_binary operation = {.f = value, .i = value_integer};
  return laci_eval_binary(eval, &operation);
}

const laci_op laci_op_prelu = {.name = "PRelu",
                               .role = LACI_ROLE_INFER,
                               .infer = laci_infer_broadcast,
                               .eval = eval,
                               .couple = laci_couple_nary};
