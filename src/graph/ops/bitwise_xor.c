/* SPDX-License-Identifier: Apache-2.0
 * BitwiseXor: y = a ^ b of integers, broadcast. */
#include "graph/ops/shared/op_in.h"

static int64_t compute_integer(int64_t a, int64_t b) { return a ^ b; }

static lac_status eval(laci_eval *eval) {
  static const laci_binary operation = {.i = compute_integer};
  return laci_eval_binary(eval, &operation);
}

const laci_op laci_op_bitwise_xor = {.name = "BitwiseXor",
                                     .role = LACI_ROLE_PASS_THROUGH,
                                     .infer = laci_infer_broadcast,
                                     .eval = eval,
                                     .couple = laci_couple_all_inputs_broadcast};
