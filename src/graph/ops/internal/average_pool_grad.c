/* SPDX-License-Identifier: Apache-2.0
 * lacuna.AveragePoolGrad: every dY is divided evenly among the positions under its window. X is not
 * needed, only its shape: the attribute input_shape. */
#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/pool_in.h"

static lac_status infer(laci_infer *infer) {
  laci_shape *dx = &infer->out[0].shape;
  lac_status st = laci_check_n_inputs(infer, 1, 1);
  if (!st) st = laci_node_read_shape_attr(infer->node, "input_shape", dx, infer->err);
  if (st) return st;
  infer->out[0].dtype = infer->in[0]->dtype;
  return laci_pooling_check_gradient_shape(infer, dx);
}

static lac_status eval(laci_eval *eval) {
  bool with_pad = laci_node_int(eval->node, "count_include_pad", 0) != 0;
  return laci_pooling_average_gradient(eval, eval->in[0], eval->out[0], with_pad);
}

const laci_op laci_op_average_pool_grad = {.name = "AveragePoolGrad",
                                           .domain = "lacuna",
                                           .role = LACI_ROLE_PASS_THROUGH,
                                           .infer = infer,
                                           .eval = eval,
                                           .couple = laci_couple_nothing};
