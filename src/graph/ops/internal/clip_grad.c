/* SPDX-License-Identifier: Apache-2.0
 * lacuna.ClipGrad: dX = dY where min < X < max, else 0. Inputs dY, X, min, max; an absent bound is
 * replaced by the attribute of that name (Clip before opset 11), if there is one. */
#include <math.h>

#include "graph/ops/shared/grad_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) { return laci_infer_equal_shapes(infer, 0, 1); }

static lac_status read_bound(const laci_eval *eval, int port, double otherwise, double *bound) {
  const laci_buf *given = laci_operand(eval, port);
  *bound = given && given->count == 1 ? laci_buf_get_f(given, 0) : otherwise;
  if (!given || given->count == 1) return LAC_OK;
  return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE, "the bounds must be scalars");
}

static lac_status eval(laci_eval *eval) {
  double low, high;
  lac_status st = read_bound(eval, 2, laci_node_float(eval->node, "min", -INFINITY), &low);
  if (!st) st = read_bound(eval, 3, laci_node_float(eval->node, "max", INFINITY), &high);
  if (!st && (!eval->in[0]->f || !eval->in[1]->f || !eval->out[0]->f))
    st = laci_node_fail(eval->node, eval->err, LAC_UNSUPPORTED, "takes floats only");
  for (int64_t at = 0; !st && at < eval->out[0]->count; at++) {
    double x = eval->in[1]->f[at];
    eval->out[0]->f[at] = x > low && x < high ? eval->in[0]->f[at] : 0;
  }
  return st;
}

const laci_op laci_op_clip_grad = {.name = "ClipGrad",
                                   .domain = "lacuna",
                                   .role = LACI_ROLE_PASS_THROUGH,
                                   .infer = infer,
                                   .eval = eval,
                                   .couple = laci_couple_nothing};
