/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.QuickGelu: y = x / (1 + e^(-alpha * x)). */
#include <math.h>

#include "graph/ops/shared/microsoft_in.h"

static double compute_double(double x, const void *context) {
  const double *alpha = context;
  return x / (1 + exp(-*alpha * x));
}

static lac_status eval(laci_eval *eval) {
  double alpha = laci_node_float(eval->node, "alpha", 1.702f);
  return laci_eval_unary(eval, &(laci_unary){.f = compute_double}, &alpha);
}

const laci_op laci_op_ms_quick_gelu = {.name = "QuickGelu",
                                       .domain = LACI_MICROSOFT,
                                       .role = LACI_ROLE_PASS_THROUGH,
                                       .attributes = LACI_ATTRIBUTES({"alpha", LACI_ATTR_FLOAT}),
                                       .infer = laci_infer_same_type,
                                       .eval = eval,
                                       .couple = laci_couple_first_input};
