/* SPDX-License-Identifier: Apache-2.0
 * Gelu: y = x / 2 * (1 + erf(x / sqrt 2)), or with approximate = "tanh"
 *       y = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))). */
#include <math.h>

#include "graph/ops/shared/op_in.h"

static double compute_double(double x, const void *context) {
  (void)context;
  return x / 2 * (1 + erf(x * M_SQRT1_2));
}

static double compute_double_tanh(double x, const void *context) {
  (void)context;
  return x / 2 * (1 + tanh(M_SQRT2 / sqrt(M_PI) * (x + 0.044715 * x * x * x)));
}

static lac_status eval(laci_eval *eval) {
  bool by_tanh = strcmp(laci_node_text(eval->node, "approximate", "none"), "tanh") == 0;
  return laci_eval_unary(eval, &(laci_unary){.f = by_tanh ? compute_double_tanh : compute_double},
                         NULL);
}

static double derivative(const laci_node *node, double x) {
  if (strcmp(laci_node_text(node, "approximate", "none"), "tanh") == 0) {
    double inner = M_SQRT2 / sqrt(M_PI) * (x + 0.044715 * x * x * x), t = tanh(inner);
    double slope = M_SQRT2 / sqrt(M_PI) * (1 + 3 * 0.044715 * x * x);
    return (1 + t) / 2 + x / 2 * (1 - t * t) * slope;
  }
  return (1 + erf(x * M_SQRT1_2)) / 2 + x * exp(-x * x / 2) * M_SQRT1_2 / sqrt(M_PI);
}

const laci_op laci_op_gelu = {.name = "Gelu",
                              .role = LACI_ROLE_PASS_THROUGH,
                              .attributes = LACI_ATTRIBUTES({"approximate", LACI_ATTR_TEXT}),
                              .infer = laci_infer_same_type,
                              .eval = eval,
                              .couple = laci_couple_first_input,
                              .slope = derivative};
