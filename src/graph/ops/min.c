/* SPDX-License-Identifier: Apache-2.0
 * Min: the smallest of any number of operands, broadcast; NaN if one is NaN. */
#include <math.h>

#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/op_in.h"

static double compute_double(double a, double b) { return a < b || isnan(a) ? a : b; }

static int64_t compute_integer(int64_t a, int64_t b) { return a < b ? a : b; }

static uint64_t compute_unsigned(uint64_t a, uint64_t b) { return a < b ? a : b; }

static lac_status eval(laci_eval *eval) {
  static const laci_binary operation = {
      .f = compute_double, .i = compute_integer, .u = compute_unsigned};
  return laci_eval_binary_over_inputs(eval, &operation);
}

const laci_op laci_op_min = {.name = "Min",
                             .role = LACI_ROLE_PASS_THROUGH,
                             .is_fold = true,
                             .symbol_safe = true,
                             .infer = laci_infer_broadcast_all,
                             .eval = eval,
                             .couple = laci_couple_all_inputs_broadcast,
                             .gradient = laci_gradient_of_max_or_min};
