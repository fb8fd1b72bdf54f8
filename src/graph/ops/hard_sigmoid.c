/* SPDX-License-Identifier: Apache-2.0
 * HardSigmoid: y = clamp(alpha * x + beta, 0, 1). */
#include "graph/ops/shared/op_in.h"

typedef struct parameters {
  double alpha, beta;
} parameters;

static double compute_double(double x, const void *context) {
  const parameters *p = context;
  double y = p->alpha * x + p->beta;
  return y < 0 ? 0 : y > 1 ? 1 : y;
}

static lac_status eval(laci_eval *eval) {
  parameters p = {.alpha = laci_node_float(eval->node, "alpha", 0.2f),
                  .beta = laci_node_float(eval->node, "beta", 0.5f)};
  return laci_eval_unary(eval, &(laci_unary){.f = compute_double}, &p);
}

static double derivative(const laci_node *node, double x) {
  double alpha = laci_node_float(node, "alpha", 0.2f);
  double y = alpha * x + laci_node_float(node, "beta", 0.5f);
  return y > 0 && y < 1 ? alpha : 0;
}

const laci_op laci_op_hard_sigmoid = {
    .name = "HardSigmoid",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"alpha", LACI_ATTR_FLOAT}, {"beta", LACI_ATTR_FLOAT}),
    .infer = laci_infer_same_type,
    .eval = eval,
    .couple = laci_couple_first_input,
    .slope = derivative};
