/* SPDX-License-Identifier: Apache-2.0
 * Div: y = a / b, broadcast; integer quotients are truncated towards zero. An integer division by
 * zero is not defined in ONNX; here it gives 0 and never traps. */
#include "graph/gradient.h"
#include "graph/ops/shared/op_in.h"

static double compute_double(double a, double b) { return a / b; }

static int64_t compute_integer(int64_t a, int64_t b) {
  if (b == 0) return 0;
  return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static uint64_t compute_unsigned(uint64_t a, uint64_t b) { return b == 0 ? 0 : a / b; }

static lac_status eval(laci_eval *eval) {
  static const laci_binary operation = {.f = compute_double,
                                        .i = compute_integer,
                                        .u = compute_unsigned,
                                        .neutral = LACI_NEUTRAL_ONE_RIGHT,
                                        .basic = LACI_BASIC_DIV};
  return laci_eval_binary(eval, &operation);
}

/** The gradient of Div: da = dy / b; db = -(dy * y) / b. */
static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  int dy = laci_gradient_of(b, node, 0);
  if (laci_gradient_is_needed(b, node, 0))
    laci_gradient_contribute_broadcast(b, node, 0,
                                       laci_gradient_add_binary(b, "Div", dy, node->inputs[1]));
  if (laci_gradient_is_needed(b, node, 1)) {
    int product = laci_gradient_add_binary(b, "Mul", dy, node->outputs[0]);
    int quotient = laci_gradient_add_binary(b, "Div", product, node->inputs[1]);
    laci_gradient_contribute_broadcast(b, node, 1, laci_gradient_add_unary(b, "Neg", quotient));
  }
  return laci_gradient_status(b);
}

const laci_op laci_op_div = {.name = "Div",
                             .role = LACI_ROLE_PASS_THROUGH,
                             .is_fold = true,
                             .symbol_safe = true,
                             .infer = laci_infer_broadcast,
                             .eval = eval,
                             .couple = laci_couple_all_inputs_broadcast,
                             .gradient = gradient};
