/* SPDX-License-Identifier: Apache-2.0
 * lacuna.SquaredErrorGrad: inputs dloss [], X, T of one shape;
 *   dX = dloss * 2 factor * (X - T) / d,   d as in squared_error.c. */
#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/squared_error_in.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 3, 3);
  if (!st) st = laci_check_input_shape(infer, 0, &(laci_shape){.rank = 0});
  return st ? st : laci_infer_equal_shapes(infer, 1, 2);
}

static lac_status eval(laci_eval *eval) {
  lac_status st = laci_check_floats(eval);
  if (st) return st;
  const laci_buf *x = eval->in[1], *t = eval->in[2];
  double factor = 2 * eval->in[0]->f[0] * laci_squared_error_factor(eval->node, t);
  for (int64_t i = 0; i < x->count; i++) eval->out[0]->f[i] = factor * (x->f[i] - t->f[i]);
  return LAC_OK;
}

const laci_op laci_op_squared_error_grad = {.name = "SquaredErrorGrad",
                                            .domain = "lacuna",
                                            .role = LACI_ROLE_PASS_THROUGH,
                                            .infer = infer,
                                            .eval = eval,
                                            .couple = laci_couple_nothing};
