/* SPDX-License-Identifier: Apache-2.0
 * ReduceSumSquare: the sum of squares over axes. */
#include "graph/gradient.h"
#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/reduce_in.h"

static void add_element(laci_reduce_state *state, double x) { state->a += x * x; }

static laci_wide add_integer_element(laci_wide state, laci_wide x) {
  return laci_reduce_add_integer(state, laci_reduce_product(x, x));
}

static lac_status eval(laci_eval *eval) {
  static const laci_reducer reducer = {.start = {.a = 0},
                                       .step = add_element,
                                       .start_integer = 0,
                                       .step_integer = add_integer_element};
  return laci_reduce_eval(eval, &reducer);
}

static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  int dy = laci_gradient_add_scale(
      b, laci_gradient_expand_reduced(b, node, laci_gradient_of(b, node, 0)), 2);
  laci_gradient_contribute(b, node, 0, laci_gradient_add_binary(b, "Mul", dy, node->inputs[0]));
  return laci_gradient_status(b);
}

const laci_op laci_op_reduce_sum_square = {
    .name = "ReduceSumSquare",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"axes", LACI_ATTR_INTS}, {"keepdims", LACI_ATTR_INT},
                                  {"noop_with_empty_axes", LACI_ATTR_INT}),
    .inputs_without_channels = 1u << 1,
    .infer = laci_reduce_infer,
    .eval = eval,
    .couple = laci_reduce_couple_orders,
    .gradient = gradient};
