/* SPDX-License-Identifier: Apache-2.0
 * GlobalAveragePool: the mean over all positions of each channel; spatial axes get size 1. */
#include "graph/gradient.h"
#include "graph/ops/shared/reduce_in.h"

static lac_status eval(laci_eval *eval) {
  static const laci_reducer reducer = {
      .start = {.a = 0}, .step = laci_reduce_add, .end = laci_reduce_mean};
  return laci_global_pool_eval(eval, &reducer);
}

static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  laci_shape x = laci_gradient_shape_of_input(b, node, 0);
  double n = (double)laci_shape_count_range(&x, 2, x.rank);
  int share = laci_gradient_add_scale(b, laci_gradient_of(b, node, 0), 1 / n);
  laci_gradient_contribute(b, node, 0, laci_gradient_add_expand(b, share, &x));
  return laci_gradient_status(b);
}

const laci_op laci_op_global_average_pool = {.name = "GlobalAveragePool",
                                             .role = LACI_ROLE_PASS_THROUGH,
                                             .infer = laci_global_pool_infer,
                                             .eval = eval,
                                             .couple = laci_global_pool_couple_orders,
                                             .gradient = gradient};
