/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.BiasAdd: y = x + bias + skip; x and skip [N, S, C], the bias along the last axis.
 */
#include "graph/ops/shared/microsoft_in.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 3, 3);
  if (st) return st;
  const laci_shape *x = laci_in_shape(infer, 0);
  int64_t size = laci_in_size(infer, 0, -1);
  st = laci_check_input_sizes(infer, 1, 1, &size);
  if (!st && x) st = laci_check_input_sizes(infer, 2, x->rank, x->dims);
  if (!st) infer->out[0] = *infer->in[0];
  return st;
}

static double add_numbers(double a, double b) { return a + b; }

static lac_status eval(laci_eval *eval) {
  return laci_eval_binary_over_inputs(eval,
                                      &(laci_binary){.f = add_numbers, .basic = LACI_BASIC_ADD});
}

const laci_op laci_op_ms_bias_add = {.name = "BiasAdd",
                                     .domain = LACI_MICROSOFT,
                                     .role = LACI_ROLE_INFER,
                                     .infer = infer,
                                     .eval = eval,
                                     .couple = laci_couple_all_inputs_broadcast};
