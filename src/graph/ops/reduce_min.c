/* SPDX-License-Identifier: Apache-2.0
 * ReduceMin: the smallest element over axes, NaN if one is NaN; infinity over no elements. */
#include <math.h>

#include "graph/gradient.h"
#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/reduce_in.h"

static void keep_smaller_element(laci_reduce_state *state, double x) {
  if (x < state->a || isnan(x)) state->a = x;
}

static laci_wide keep_smaller_integer(laci_wide state, laci_wide x) {
  return x < state ? x : state;
}

static lac_status eval(laci_eval *eval) {
  int64_t low, high;
  laci_int_get_range(eval->in[0]->dtype, &low, &high);
  const laci_reducer reducer = {.start = {.a = INFINITY},
                                .step = keep_smaller_element,
                                .start_integer = laci_int_to_wide(eval->in[0]->dtype, high),
                                .step_integer = keep_smaller_integer};
  return laci_reduce_eval(eval, &reducer);
}

static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  int y = laci_gradient_restore_axes(b, node, node->outputs[0]);
  int dy = laci_gradient_restore_axes(b, node, laci_gradient_of(b, node, 0));
  laci_gradient_contribute(b, node, 0, laci_gradient_share_among_equal(b, node, dy, y));
  return laci_gradient_status(b);
}

const laci_op laci_op_reduce_min = {
    .name = "ReduceMin",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"axes", LACI_ATTR_INTS}, {"keepdims", LACI_ATTR_INT},
                                  {"noop_with_empty_axes", LACI_ATTR_INT}),
    .is_fold = true,
    .inputs_without_channels = 1u << 1,
    .infer = laci_reduce_infer,
    .eval = eval,
    .couple = laci_reduce_couple_orders,
    .gradient = gradient};
