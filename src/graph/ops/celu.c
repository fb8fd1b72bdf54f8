/* SPDX-License-Identifier: Apache-2.0
 * Celu: y = x where x >= 0, else alpha * (e^(x / alpha) - 1). */
#include <math.h>

#include "graph/ops/shared/op_in.h"

typedef struct parameters {
  double alpha;
} parameters;

static double compute_double(double x, const void *context) {
  const parameters *p = context;
  return x < 0 ? p->alpha * expm1(x / p->alpha) : x;
}

static lac_status eval(laci_eval *eval) {
  parameters p = {.alpha = laci_node_float(eval->node, "alpha", 1)};
  return laci_eval_unary(eval, &(laci_unary){.f = compute_double}, &p);
}

static double derivative(const laci_node *node, double x) {
  return x < 0 ? exp(x / laci_node_float(node, "alpha", 1)) : 1;
}

const laci_op laci_op_celu = {.name = "Celu",
                              .role = LACI_ROLE_PASS_THROUGH,
                              .attributes = LACI_ATTRIBUTES({"alpha", LACI_ATTR_FLOAT}),
                              .infer = laci_infer_same_type,
                              .eval = eval,
                              .couple = laci_couple_first_input,
                              .slope = derivative};
