/* SPDX-License-Identifier: Apache-2.0
 * ReduceL2: the square root of the sum of squares over axes. */
#include <math.h>

#include "graph/gradient.h"
#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/reduce_in.h"

static void add_element(laci_reduce_state *state, double x) { state->a += x * x; }

static double finish_reduction(const laci_reduce_state *state, int64_t n) {
  (void)n;
  return sqrt(state->a);
}

static lac_status eval(laci_eval *eval) {
  static const laci_reducer reducer = {
      .start = {.a = 0}, .step = add_element, .end = finish_reduction};
  return laci_reduce_eval(eval, &reducer);
}

/** dx = dy * x / y. */
static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  int share = laci_gradient_add_binary(b, "Div", laci_gradient_of(b, node, 0), node->outputs[0]);
  share = laci_gradient_expand_reduced(b, node, share);
  laci_gradient_contribute(b, node, 0, laci_gradient_add_binary(b, "Mul", share, node->inputs[0]));
  return laci_gradient_status(b);
}

const laci_op laci_op_reduce_l2 = {
    .name = "ReduceL2",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"axes", LACI_ATTR_INTS}, {"keepdims", LACI_ATTR_INT},
                                  {"noop_with_empty_axes", LACI_ATTR_INT}),
    .inputs_without_channels = 1u << 1,
    .infer = laci_reduce_infer,
    .eval = eval,
    .couple = laci_reduce_couple_orders,
    .gradient = gradient};
