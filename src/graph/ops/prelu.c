/* SPDX-License-Identifier: Apache-2.0
 * PRelu: y = x where x >= 0, else slope * x; the slope is broadcast to x.
 * The slope is a parameter that follows the channels of x. */
#include "graph/gradient.h"
#include "graph/ops/shared/op_in.h"

static double value(double a, double b) { return a < 0 ? a * b : a; }

static int64_t value_integer(int64_t a, int64_t b) {
  return a < 0 ? (int64_t)((uint64_t)a * (uint64_t)b) : a;
}

static lac_status eval(laci_eval *eval) {
  static const laci_binary operation = {.f = value, .i = value_integer};
  return laci_eval_binary(eval, &operation);
}

/** dx = dy where x > 0, else dy * slope;  dslope = 0 where x > 0, else dy * x. */
static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  int dy = laci_gradient_of(b, node, 0), x = node->inputs[0];
  int zero = laci_gradient_scalar(b, x, 0), positive = laci_gradient_binary(b, "Greater", x, zero);
  if (laci_gradient_wanted(b, node, 0)) {
    int scaled = laci_gradient_binary(b, "Mul", dy, node->inputs[1]);
    laci_gradient_give(b, node, 0, laci_gradient_where(b, positive, dy, scaled));
  }
  if (laci_gradient_wanted(b, node, 1)) {
    int product = laci_gradient_binary(b, "Mul", dy, x);
    laci_gradient_give_broadcast(b, node, 1, laci_gradient_where(b, positive, zero, product));
  }
  return laci_gradient_ok(b);
}

const laci_op laci_op_prelu = {.name = "PRelu",
                               .role = LACI_ROLE_INFER,
                               .infer = laci_infer_broadcast,
                               .eval = eval,
                               .couple = laci_couple_nary,
                               .gradient = gradient};
