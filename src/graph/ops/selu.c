/* SPDX-License-Identifier: Apache-2.0
 * Selu: y = gamma * x where x > 0, else gamma * alpha * (e^x - 1).
 * The defaults are the fixed point that keeps mean 0 and variance 1. */
#include <math.h>

#include "graph/ops/shared/op_in.h"

typedef struct parameters {
  double alpha, gamma;
} parameters;

static double compute_double(double x, const void *context) {
  const parameters *p = context;
  return p->gamma * (x > 0 ? x : p->alpha * expm1(x));
}

static lac_status eval(laci_eval *eval) {
  parameters p = {.alpha = laci_node_float(eval->node, "alpha", 1.67326319217681884765625f),
                  .gamma = laci_node_float(eval->node, "gamma", 1.05070102214813232421875f)};
  return laci_eval_unary(eval, &(laci_unary){.f = compute_double}, &p);
}

static double derivative(const laci_node *node, double x) {
  double gamma = laci_node_float(node, "gamma", 1.05070102214813232421875f);
  double alpha = laci_node_float(node, "alpha", 1.67326319217681884765625f);
  return x > 0 ? gamma : gamma * alpha * exp(x);
}

const laci_op laci_op_selu = {
    .name = "Selu",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"alpha", LACI_ATTR_FLOAT}, {"gamma", LACI_ATTR_FLOAT}),
    .infer = laci_infer_same_type,
    .eval = eval,
    .couple = laci_couple_first_input,
    .slope = derivative};
