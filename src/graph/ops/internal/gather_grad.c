/* SPDX-License-Identifier: Apache-2.0
 * lacuna.GatherGrad: dX of shape input_shape starts as zeros; every slice of dY is added at the
 * index that Gather read it from. Inputs dY, indices; the attribute axis is not negative. Slices
 * are added in the order of the indices, so that the same input gives the same bits. */
#include "graph/ops/shared/grad_in.h"
#include "tensor/buf.h"

/** Checks that the shape of dY is input_shape with `axis` replaced by the axes of the indices. */
static lac_status check_shapes(laci_infer *infer, int axis) {
  const laci_shape *dx = &infer->out[0].shape, *indices = laci_in_shape(infer, 1);
  if (!indices) return LAC_OK;
  laci_shape dy = {.rank = dx->rank - 1 + indices->rank};
  if (dy.rank > LACI_MAX_RANK)
    return laci_node_fail(infer->node, infer->err, LAC_UNSUPPORTED, "a tensor of %d axes", dy.rank);
  for (int at = 0; at < dy.rank; at++) {
    int after = at - axis - indices->rank;
    dy.dims[at] = at < axis    ? dx->dims[at]
                  : after >= 0 ? dx->dims[axis + 1 + after]
                               : indices->dims[at - axis];
  }
  return laci_check_input_shape(infer, 0, &dy);
}

static lac_status infer(laci_infer *infer) {
  int64_t axis = laci_node_int(infer->node, "axis", 0);
  laci_shape *dx = &infer->out[0].shape;
  lac_status st = laci_check_n_inputs(infer, 2, 2);
  if (!st) st = laci_node_read_shape_attr(infer->node, "input_shape", dx, infer->err);
  if (!st) st = laci_check_axis(infer->node, dx->rank, &axis, infer->err);
  if (st) return st;
  infer->out[0].dtype = infer->in[0]->dtype;
  return check_shapes(infer, (int)axis);
}

static lac_status eval(laci_eval *eval) {
  const laci_buf *dy = eval->in[0], *indices = eval->in[1];
  laci_buf *dx = eval->out[0];
  int64_t axis = laci_node_int(eval->node, "axis", 0), from = 0;
  lac_status st = laci_check_axis(eval->node, dx->shape.rank, &axis, eval->err);
  if (st) return st;
  if (!dy->f || !dx->f || !indices->i)
    return laci_node_fail(eval->node, eval->err, LAC_UNSUPPORTED, "takes floats and indices");
  int64_t n = dx->shape.dims[axis];
  int64_t n_outer = laci_shape_count_range(&dx->shape, 0, (int)axis);
  int64_t inner = laci_shape_count_range(&dx->shape, (int)axis + 1, dx->shape.rank);
  for (int64_t outer = 0; outer < n_outer; outer++) {
    for (int64_t at = 0; at < indices->count; at++, from += inner) {
      int64_t index = indices->i[at];
      st = laci_check_index(eval, n, &index);
      if (st) return st;
      double *to = dx->f + (outer * n + index) * inner;
      for (int64_t i = 0; i < inner; i++) to[i] += dy->f[from + i];
    }
  }
  return LAC_OK;
}

const laci_op laci_op_gather_grad = {.name = "GatherGrad",
                                     .domain = "lacuna",
                                     .role = LACI_ROLE_PASS_THROUGH,
                                     .infer = infer,
                                     .eval = eval,
                                     .couple = laci_couple_nothing};
