/* SPDX-License-Identifier: Apache-2.0
 * ReduceProd: the product over axes. Inference evaluates it, for exporters count elements with
 * it. */
#include "graph/ops/shared/reduce_in.h"

static void multiply_by_element(laci_reduce_state *state, double x) { state->a *= x; }

static lac_status eval(laci_eval *eval) {
  static const laci_reducer reducer = {.start = {.a = 1},
                                       .step = multiply_by_element,
                                       .start_integer = 1,
                                       .step_integer = laci_reduce_product};
  return laci_reduce_eval(eval, &reducer);
}

const laci_op laci_op_reduce_prod = {
    .name = "ReduceProd",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"axes", LACI_ATTR_INTS}, {"keepdims", LACI_ATTR_INT},
                                  {"noop_with_empty_axes", LACI_ATTR_INT}),
    .is_fold = true,
    .inputs_without_channels = 1u << 1,
    .infer = laci_reduce_infer,
    .eval = eval,
    .couple = laci_reduce_couple_orders};
