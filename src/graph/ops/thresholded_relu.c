/* SPDX-License-Identifier: Apache-2.0
 * ThresholdedRelu: y = x where x > alpha, else 0. */
#include "graph/ops/shared/op_in.h"

typedef struct parameters {
  double alpha;
} parameters;

static double compute_double(double x, const void *context) {
  const parameters *p = context;
  return x > p->alpha ? x : 0;
}

static lac_status eval(laci_eval *eval) {
  parameters p = {.alpha = laci_node_float(eval->node, "alpha", 1)};
  return laci_eval_unary(eval, &(laci_unary){.f = compute_double}, &p);
}

static double derivative(const laci_node *node, double x) {
  return x > laci_node_float(node, "alpha", 1) ? 1 : 0;
}

const laci_op laci_op_thresholded_relu = {.name = "ThresholdedRelu",
                                          .role = LACI_ROLE_PASS_THROUGH,
                                          .discontinuous = true,
                                          .attributes = LACI_ATTRIBUTES({"alpha", LACI_ATTR_FLOAT}),
                                          .infer = laci_infer_same_type,
                                          .eval = eval,
                                          .couple = laci_couple_first_input,
                                          .slope = derivative};
