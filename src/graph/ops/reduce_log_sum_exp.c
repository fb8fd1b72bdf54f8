/* SPDX-License-Identifier: Apache-2.0
 * ReduceLogSumExp: log(sum e^x) over axes, in one pass: a is the largest x so far, b the sum of
 * e^(x - a). When a larger x is found, b is scaled down, so nothing overflows. */
#include <math.h>

#include "graph/gradient.h"
#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/reduce_in.h"

static void add_element(laci_reduce_state *state, double x) {
  if (x > state->a) {
    state->b = state->b * exp(state->a - x) + 1;
    state->a = x;
  } else if (x != -INFINITY) {
    state->b += x == state->a ? 1 : exp(x - state->a);
  }
}

static double finish_reduction(const laci_reduce_state *state, int64_t n) {
  (void)n;
  return state->a + log(state->b);
}

static lac_status eval(laci_eval *eval) {
  static const laci_reducer reducer = {
      .start = {.a = -INFINITY}, .step = add_element, .end = finish_reduction};
  return laci_reduce_eval(eval, &reducer);
}

/** The gradient of ReduceLogSumExp: dx = dy * e^(x - y). */
static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  int y = laci_gradient_restore_axes(b, node, node->outputs[0]);
  int dy = laci_gradient_restore_axes(b, node, laci_gradient_of(b, node, 0));
  int part =
      laci_gradient_add_unary(b, "Exp", laci_gradient_add_binary(b, "Sub", node->inputs[0], y));
  laci_gradient_contribute(b, node, 0, laci_gradient_add_binary(b, "Mul", part, dy));
  return laci_gradient_status(b);
}

const laci_op laci_op_reduce_log_sum_exp = {
    .name = "ReduceLogSumExp",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"axes", LACI_ATTR_INTS}, {"keepdims", LACI_ATTR_INT},
                                  {"noop_with_empty_axes", LACI_ATTR_INT}),
    .inputs_without_channels = 1u << 1,
    .infer = laci_reduce_infer,
    .eval = eval,
    .couple = laci_reduce_couple_orders,
    .gradient = gradient};
