/* SPDX-License-Identifier: Apache-2.0
 * Hardmax: 1 at the first largest element of a line, 0 elsewhere. Among equal elements the first is
 * chosen, so the order along a line matters: its axes are FIXED: their order must stay
 * (coupling.h). */
#include "graph/coupling.h"
#include "graph/ops/shared/line_in.h"

static void hardmax_line(const double *x, double *y, int64_t n, int64_t stride,
                         const void *context) {
  (void)context;
  int64_t best = 0;
  for (int64_t i = 1; i < n; i++) {
    if (x[i * stride] > x[best * stride]) best = i;
  }
  for (int64_t i = 0; i < n; i++) y[i * stride] = i == best;
}

static lac_status eval(laci_eval *eval) {
  return laci_line_eval(eval, laci_softmax_axis(eval->node), hardmax_line, NULL);
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  laci_line_axis line = laci_softmax_axis(node);
  const laci_shape *x = laci_port_shape(c, 0);
  c->why = "order matters to Hardmax, which takes the first of equal elements";
  int axis = x ? laci_axis_counted_from_first(line.axis, x->rank) : -1;
  if (axis < 0 || !laci_port_shape(c, LACI_OUT(0))) return laci_coupling_status(c);
  laci_couple_equal_axes(c, 0, LACI_OUT(0));
  for (int at = axis; at < x->rank; at++) {
    laci_coupling_set_label(c, 0, at, LACI_FIXED);
    laci_coupling_set_label(c, LACI_OUT(0), at, LACI_FIXED);
    if (!line.flattened) break;
  }
  return laci_coupling_status(c);
}

const laci_op laci_op_hardmax = {.name = "Hardmax",
                                 .role = LACI_ROLE_PASS_THROUGH,
                                 .discontinuous = true,
                                 .attributes = LACI_ATTRIBUTES({"axis", LACI_ATTR_INT}),
                                 .infer = laci_softmax_infer,
                                 .eval = eval,
                                 .couple = couple_channel_orders};
