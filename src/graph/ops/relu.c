/* SPDX-License-Identifier: Apache-2.0
 * Relu: y = max(x, 0), element by element; NaN stays NaN.
 * It passes any channel order through. */
#include "graph/gradient.h"
#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/op_in.h"

static double compute_double(double x, const void *context) {
  (void)context;
  return x < 0 ? 0 : x;
}

static int64_t compute_integer(int64_t x, const void *context) {
  (void)context;
  return x < 0 ? 0 : x;
}

static lac_status eval(laci_eval *eval) {
  return laci_eval_unary(eval, &(laci_unary){.f = compute_double, .i = compute_integer}, NULL);
}

static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  const int inputs[] = {laci_gradient_of(b, node, 0), node->outputs[0]};
  laci_gradient_contribute(b, node, 0, laci_gradient_add_internal(b, "ReluGrad", 2, inputs, NULL));
  return laci_gradient_status(b);
}

const laci_op laci_op_relu = {.name = "Relu",
                              .role = LACI_ROLE_PASS_THROUGH,
                              .infer = laci_infer_same_type,
                              .eval = eval,
                              .couple = laci_couple_first_input,
                              .gradient = gradient};
