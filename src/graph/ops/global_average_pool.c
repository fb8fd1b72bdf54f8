/* SPDX-License-Identifier: Apache-2.0
 * GlobalAveragePool: the mean over all places of each channel; space shrinks to size 1. */
#include "graph/ops/reduce_in.h"

static lac_status eval(laci_eval *eval) {
  static const laci_reducer reducer = {
      .start = {.a = 0}, .step = laci_reduce_add, .end = laci_reduce_mean};
  return laci_global_eval(eval, &reducer);
}

const laci_op laci_op_global_average_pool = {.name = "GlobalAveragePool",
                                             .role = LACI_ROLE_CLEAR,
                                             .infer = laci_global_infer,
                                             .eval = eval,
                                             .couple = laci_global_couple};
