/* SPDX-License-Identifier: Apache-2.0
 * lacuna.ReluGrad: dX = dY where Y > 0, else 0. Y is the output of Relu, so that its input need not
 * be kept in memory. Where Y is NaN, dX is 0, as the comparison is false. */
#include "graph/ops/shared/grad_in.h"

static double compute_double(double dy, double y) { return y > 0 ? dy : 0; }

static lac_status infer(laci_infer *infer) { return laci_infer_equal_shapes(infer, 0, 1); }

static lac_status eval(laci_eval *eval) {
  return laci_eval_binary(eval, &(laci_binary){.f = compute_double});
}

const laci_op laci_op_relu_grad = {.name = "ReluGrad",
                                   .domain = "lacuna",
                                   .role = LACI_ROLE_PASS_THROUGH,
                                   .infer = infer,
                                   .eval = eval,
                                   .couple = laci_couple_nothing};
