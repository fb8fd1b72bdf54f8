/* SPDX-License-Identifier: Apache-2.0
 * LeakyRelu: y = x where x >= 0, else alpha * x. */
#include "graph/ops/shared/op_in.h"

typedef struct parameters {
  double alpha;
} parameters;

static double compute_double(double x, const void *context) {
  const parameters *p = context;
  return x < 0 ? p->alpha * x : x;
}

static lac_status eval(laci_eval *eval) {
  parameters p = {.alpha = laci_node_float(eval->node, "alpha", 0.01f)};
  return laci_eval_unary(eval, &(laci_unary){.f = compute_double}, &p);
}

static double derivative(const laci_node *node, double x) {
  return x < 0 ? laci_node_float(node, "alpha", 0.01f) : 1;
}

const laci_op laci_op_leaky_relu = {.name = "LeakyRelu",
                                    .role = LACI_ROLE_PASS_THROUGH,
                                    .attributes = LACI_ATTRIBUTES({"alpha", LACI_ATTR_FLOAT}),
                                    .infer = laci_infer_same_type,
                                    .eval = eval,
                                    .couple = laci_couple_first_input,
                                    .slope = derivative};
