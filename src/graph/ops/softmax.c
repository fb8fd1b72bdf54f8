/* SPDX-License-Identifier: Apache-2.0
 * Softmax: y = e^x / sum e^x along a line; the largest x is subtracted first, so that nothing
 * overflows. */
#include <math.h>

#include "graph/gradient.h"
#include "graph/ops/shared/line_in.h"

static void softmax_line(const double *x, double *y, int64_t n, int64_t stride,
                         const void *context) {
  (void)context;
  double largest = -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; i++) {
    if (x[i * stride] > largest) largest = x[i * stride];
  }
  for (int64_t i = 0; i < n; i++) sum += y[i * stride] = exp(x[i * stride] - largest);
  for (int64_t i = 0; i < n; i++) y[i * stride] /= sum;
}

static lac_status eval(laci_eval *eval) {
  return laci_line_eval(eval, laci_softmax_axis(eval->node), softmax_line, NULL);
}

static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  int64_t axes[LACI_MAX_RANK];
  int n = laci_softmax_axes(node, laci_gradient_shape_of_input(b, node, 0).rank, axes);
  if (n == 0) { /* lines of one element: y is 1 for any x */
    return laci_gradient_contribute_zero(b, node);
  }
  laci_attr attr = laci_attr_ints("axes", n, axes);
  const int inputs[] = {laci_gradient_of(b, node, 0), node->outputs[0]};
  laci_gradient_node made = {.type = "SoftmaxGrad",
                             .domain = "lacuna",
                             .n_inputs = 2,
                             .inputs = inputs,
                             .n_attrs = 1,
                             .attrs = &attr};
  laci_gradient_contribute(b, node, 0, laci_gradient_add_node(b, &made, NULL));
  return laci_gradient_status(b);
}

const laci_op laci_op_softmax = {.name = "Softmax",
                                 .role = LACI_ROLE_PASS_THROUGH,
                                 .attributes = LACI_ATTRIBUTES({"axis", LACI_ATTR_INT}),
                                 .infer = laci_softmax_infer,
                                 .eval = eval,
                                 .couple = laci_softmax_couple_orders,
                                 .gradient = gradient};
