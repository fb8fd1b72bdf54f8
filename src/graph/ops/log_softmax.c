/* SPDX-License-Identifier: Apache-2.0
 * LogSoftmax: y = x - log(sum e^x) along a line; the largest x is subtracted first, so that nothing
 * overflows. */
#include <math.h>

#include "graph/gradient.h"
#include "graph/ops/shared/line_in.h"

static void log_softmax_line(const double *x, double *y, int64_t n, int64_t stride,
                             const void *context) {
  (void)context;
  double largest = -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; i++) {
    if (x[i * stride] > largest) largest = x[i * stride];
  }
  for (int64_t i = 0; i < n; i++) sum += exp(x[i * stride] - largest);
  for (int64_t i = 0; i < n; i++) y[i * stride] = x[i * stride] - largest - log(sum);
}

static lac_status eval(laci_eval *eval) {
  return laci_line_eval(eval, laci_softmax_axis(eval->node), log_softmax_line, NULL);
}

/** dx = dy - e^y * sum(dy) along each line. */
static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  int64_t axes[LACI_MAX_RANK];
  bool flags[LACI_MAX_RANK] = {false};
  int n = laci_softmax_axes(node, laci_gradient_shape_of_input(b, node, 0).rank, axes);
  for (int at = 0; at < n; at++) flags[axes[at]] = true;
  int dy = laci_gradient_of(b, node, 0), sum = laci_gradient_add_sum(b, dy, flags, true);
  int part =
      laci_gradient_add_binary(b, "Mul", laci_gradient_add_unary(b, "Exp", node->outputs[0]), sum);
  laci_gradient_contribute(b, node, 0, laci_gradient_add_binary(b, "Sub", dy, part));
  return laci_gradient_status(b);
}

const laci_op laci_op_log_softmax = {.name = "LogSoftmax",
                                     .role = LACI_ROLE_PASS_THROUGH,
                                     .attributes = LACI_ATTRIBUTES({"axis", LACI_ATTR_INT}),
                                     .infer = laci_softmax_infer,
                                     .eval = eval,
                                     .couple = laci_softmax_couple_orders,
                                     .gradient = gradient};
