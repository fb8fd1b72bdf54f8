/* SPDX-License-Identifier: Apache-2.0
 * ReduceSum: the sum over axes. The axes are an input from opset 13 on; for all other reductions
 * from 18 on. */
#include "graph/gradient.h"
#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/reduce_in.h"

static lac_status eval(laci_eval *eval) {
  static const laci_reducer reducer = {.start = {.a = 0},
                                       .step = laci_reduce_add,
                                       .start_integer = 0,
                                       .step_integer = laci_reduce_add_integer};
  return laci_reduce_eval(eval, &reducer);
}

static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  laci_gradient_contribute(b, node, 0,
                           laci_gradient_expand_reduced(b, node, laci_gradient_of(b, node, 0)));
  return laci_gradient_status(b);
}

const laci_op laci_op_reduce_sum = {
    .name = "ReduceSum",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"axes", LACI_ATTR_INTS}, {"keepdims", LACI_ATTR_INT},
                                  {"noop_with_empty_axes", LACI_ATTR_INT}),
    .is_fold = true,
    .inputs_without_channels = 1u << 1,
    .infer = laci_reduce_infer,
    .eval = eval,
    .couple = laci_reduce_couple_orders,
    .gradient = gradient};
