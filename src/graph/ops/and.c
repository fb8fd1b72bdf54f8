/* SPDX-License-Identifier: Apache-2.0
 * And: y = a && b of booleans, broadcast. */
#include "graph/ops/shared/op_in.h"

static int64_t compute_integer(int64_t a, int64_t b) { return a && b; }

static lac_status eval(laci_eval *eval) {
  static const laci_binary operation = {.i = compute_integer};
  return laci_eval_binary(eval, &operation);
}

const laci_op laci_op_and = {.name = "And",
                             .role = LACI_ROLE_PASS_THROUGH,
                             .is_fold = true,
                             .symbol_safe = true,
                             .infer = laci_infer_broadcast,
                             .eval = eval,
                             .couple = laci_couple_all_inputs_broadcast};
