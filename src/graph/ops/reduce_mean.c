/* SPDX-License-Identifier: Apache-2.0
 * ReduceMean: the mean over axes; of integers, cut towards zero. */
#include "graph/ops/reduce_in.h"

static lac_status eval(laci_eval *eval) {
  static const laci_reducer reducer = {
      .start = {.a = 0}, .step = laci_reduce_add, .end = laci_reduce_mean};
  return laci_reduce_eval(eval, &reducer);
}

const laci_op laci_op_reduce_mean = {.name = "ReduceMean",
                                     .role = LACI_ROLE_CLEAR,
                                     .infer = laci_reduce_infer,
                                     .eval = eval,
                                     .couple = laci_reduce_couple};
