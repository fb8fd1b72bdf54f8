/* SPDX-License-Identifier: Apache-2.0
 * GlobalMaxPool: the largest element over all positions of each channel, or NaN if there is one;
 * spatial axes get size 1. */
#include <math.h>

#include "graph/gradient.h"
#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/reduce_in.h"

static void keep_larger_element(laci_reduce_state *state, double x) {
  if (x > state->a || isnan(x)) state->a = x;
}

static lac_status eval(laci_eval *eval) {
  static const laci_reducer reducer = {.start = {.a = -INFINITY}, .step = keep_larger_element};
  return laci_global_pool_eval(eval, &reducer);
}

static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  laci_gradient_contribute(
      b, node, 0,
      laci_gradient_share_among_equal(b, node, laci_gradient_of(b, node, 0), node->outputs[0]));
  return laci_gradient_status(b);
}

const laci_op laci_op_global_max_pool = {.name = "GlobalMaxPool",
                                         .role = LACI_ROLE_PASS_THROUGH,
                                         .infer = laci_global_pool_infer,
                                         .eval = eval,
                                         .couple = laci_global_pool_couple_orders,
                                         .gradient = gradient};
