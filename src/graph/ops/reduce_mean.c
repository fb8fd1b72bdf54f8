/* SPDX-License-Identifier: Apache-2.0
 * ReduceMean: the mean over axes; for integers, truncated towards zero. */
#include "graph/gradient.h"
#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/reduce_in.h"

static laci_wide mean_integer(laci_wide sum, int64_t n) { return n > 0 ? sum / n : 0; }

static lac_status eval(laci_eval *eval) {
  static const laci_reducer reducer = {.start = {.a = 0},
                                       .step = laci_reduce_add,
                                       .end = laci_reduce_mean,
                                       .start_integer = 0,
                                       .step_integer = laci_reduce_add_integer,
                                       .end_integer = mean_integer};
  return laci_reduce_eval(eval, &reducer);
}

static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  laci_shape x = laci_gradient_shape_of_input(b, node, 0);
  laci_shape y = laci_gradient_shape_of_value(b, node->outputs[0]);
  double n = (double)laci_shape_count(&x) / (double)laci_shape_count(&y);
  int share = laci_gradient_add_scale(b, laci_gradient_of(b, node, 0), 1 / n);
  laci_gradient_contribute(b, node, 0, laci_gradient_expand_reduced(b, node, share));
  return laci_gradient_status(b);
}

const laci_op laci_op_reduce_mean = {
    .name = "ReduceMean",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"axes", LACI_ATTR_INTS}, {"keepdims", LACI_ATTR_INT},
                                  {"noop_with_empty_axes", LACI_ATTR_INT}),
    .inputs_without_channels = 1u << 1,
    .infer = laci_reduce_infer,
    .eval = eval,
    .couple = laci_reduce_couple_orders,
    .gradient = gradient};
