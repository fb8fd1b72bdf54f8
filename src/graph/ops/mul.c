/* SPDX-License-Identifier: Apache-2.0
 * Mul: y = a * b, broadcast. Inference evaluates it: a symbol * 1 stays that symbol. */
#include "graph/gradient.h"
#include "graph/ops/shared/op_in.h"

static double compute_double(double a, double b) { return a * b; }

static int64_t compute_integer(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a * (uint64_t)b);
}

static lac_status eval(laci_eval *eval) {
  static const laci_binary operation = {.f = compute_double,
                                        .i = compute_integer,
                                        .neutral = LACI_NEUTRAL_ONE,
                                        .basic = LACI_BASIC_MUL};
  return laci_eval_binary(eval, &operation);
}

static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  int dy = laci_gradient_of(b, node, 0);
  for (int port = 0; port < 2; port++) {
    if (laci_gradient_is_needed(b, node, port))
      laci_gradient_contribute_broadcast(
          b, node, port, laci_gradient_add_binary(b, "Mul", dy, node->inputs[!port]));
  }
  return laci_gradient_status(b);
}

const laci_op laci_op_mul = {.name = "Mul",
                             .role = LACI_ROLE_PASS_THROUGH,
                             .is_fold = true,
                             .symbol_safe = true,
                             .infer = laci_infer_broadcast,
                             .eval = eval,
                             .couple = laci_couple_all_inputs_broadcast,
                             .gradient = gradient};
