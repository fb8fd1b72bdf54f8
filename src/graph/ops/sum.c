/* SPDX-License-Identifier: Apache-2.0
 * Sum: adds any number of operands, broadcast. */
#include "graph/gradient.h"
#include "graph/ops/shared/op_in.h"

static double compute_double(double a, double b) { return a + b; }

static int64_t compute_integer(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a + (uint64_t)b);
}

static lac_status eval(laci_eval *eval) {
  static const laci_binary operation = {
      .f = compute_double, .i = compute_integer, .neutral = LACI_NEUTRAL_ZERO};
  return laci_eval_binary_over_inputs(eval, &operation);
}

static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  for (int port = 0; port < node->n_inputs; port++)
    laci_gradient_contribute_broadcast(b, node, port, laci_gradient_of(b, node, 0));
  return laci_gradient_status(b);
}

const laci_op laci_op_sum = {.name = "Sum",
                             .role = LACI_ROLE_PASS_THROUGH,
                             .is_fold = true,
                             .symbol_safe = true,
                             .infer = laci_infer_broadcast_all,
                             .eval = eval,
                             .couple = laci_couple_all_inputs_broadcast,
                             .gradient = gradient};
