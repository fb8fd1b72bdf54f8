/* SPDX-License-Identifier: Apache-2.0
 * LpNormalization: y = x / ||x||_p along an axis, p = 1 or 2; a line of zeros stays zero. */
#include <math.h>

#include "graph/ops/shared/line_in.h"

static laci_line_axis axis_of(const laci_node *node) {
  return (laci_line_axis){.axis = laci_node_int(node, "axis", -1)};
}

static void normalise_line(const double *x, double *y, int64_t n, int64_t stride,
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

static lac_status infer(laci_infer *infer) { return laci_line_infer(infer, axis_of(infer->node)); }

static lac_status eval(laci_eval *eval) {
  int64_t p = laci_node_int(eval->node, "p", 2);
  if (p != 1 && p != 2) {
    return laci_node_fail(eval->node, eval->err, LAC_UNSUPPORTED, "p is %lld, wanted 1 or 2",
                          (long long)p);
  }
  bool absolute = p == 1;
  return laci_line_eval(eval, axis_of(eval->node), normalise_line, &absolute);
}

static lac_status couple(const laci_graph *graph, const laci_node *node, laci_coupling *c) {
  (void)graph;
  return laci_line_couple(c, axis_of(node));
}

const laci_op laci_op_lp_normalization = {
    .name = "LpNormalization",
    .role = LACI_ROLE_CLEAR,
    .attributes = LACI_ATTRIBUTES({"axis", LACI_ATTR_INT}, {"p", LACI_ATTR_INT}),
    .infer = infer,
    .eval = eval,
    .couple = couple};
