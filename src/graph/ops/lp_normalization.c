/* SPDX-License-Identifier: Apache-2.0
 * LpNormalization: y = x / ||x||_p along an axis, p = 1 or 2; a line of zeros stays zero. */
#include <math.h>

#include "graph/gradient.h"
#include "graph/ops/shared/line_in.h"

static laci_line_axis line_axis_of_node(const laci_node *node) {
  return (laci_line_axis){.axis = laci_node_int(node, "axis", -1)};
}

static void normalize_line(const double *x, double *y, int64_t n, int64_t stride,
                           const void *context) {
  bool absolute = *(const bool *)context;
  double norm = 0;
  for (int64_t i = 0; i < n; i++) {
    double v = x[i * stride];
    norm += absolute ? fabs(v) : v * v;
  }
  if (!absolute) norm = sqrt(norm);
  for (int64_t i = 0; i < n; i++) y[i * stride] = norm == 0 ? 0 : x[i * stride] / norm;
}

static lac_status infer(laci_infer *infer) {
  return laci_line_infer(infer, line_axis_of_node(infer->node));
}

static lac_status eval(laci_eval *eval) {
  int64_t p = laci_node_int(eval->node, "p", 2);
  if (p != 1 && p != 2) {
    return laci_node_fail(eval->node, eval->err, LAC_UNSUPPORTED, "p is %lld, wanted 1 or 2",
                          (long long)p);
  }
  bool absolute = p == 1;
  return laci_line_eval(eval, line_axis_of_node(eval->node), normalize_line, &absolute);
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  return laci_line_couple_orders(c, line_axis_of_node(node));
}

/** dx = (dy - d sum(dy y)) / n, where n is the norm and d = dn / dx, which is y for p = 2 and
 * sign(x) for p = 1; dx is 0 along a line of zeros. */
static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  int dy = laci_gradient_of(b, node, 0), x = node->inputs[0], y = node->outputs[0];
  int rank = laci_gradient_shape_of_value(b, x).rank;
  int64_t axis = laci_axis_counted_from_first(laci_node_int(node, "axis", -1), rank);
  bool absolute = laci_node_int(node, "p", 2) == 1, flags[LACI_MAX_RANK] = {false};
  if (axis < 0) return laci_gradient_fail_unsupported(b, node, "its axis does not fit");
  flags[axis] = true;
  int size =
      absolute ? laci_gradient_add_unary(b, "Abs", x) : laci_gradient_add_binary(b, "Mul", x, x);
  int norm = laci_gradient_add_sum(b, size, flags, true),
      zero = laci_gradient_store_scalar(b, x, 0);
  if (!absolute) norm = laci_gradient_add_unary(b, "Sqrt", norm);
  int above = laci_gradient_add_binary(b, "Greater", norm, zero);
  int r = laci_gradient_add_where(b, above, laci_gradient_add_unary(b, "Reciprocal", norm), zero);
  int along = laci_gradient_add_sum(b, laci_gradient_add_binary(b, "Mul", dy, y), flags, true);
  int d = absolute ? laci_gradient_add_unary(b, "Sign", x) : y;
  int rest = laci_gradient_add_binary(b, "Sub", dy, laci_gradient_add_binary(b, "Mul", d, along));
  laci_gradient_contribute(b, node, 0, laci_gradient_add_binary(b, "Mul", rest, r));
  return laci_gradient_status(b);
}

const laci_op laci_op_lp_normalization = {
    .name = "LpNormalization",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"axis", LACI_ATTR_INT}, {"p", LACI_ATTR_INT}),
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders,
    .gradient = gradient};
