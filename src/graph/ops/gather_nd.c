/* SPDX-License-Identifier: Apache-2.0
 * GatherND: for each tuple of indices, the slice of x that it names; indices and x share the first
 * batch_dims axes (opset 12). Which slice is read depends on the indices, so all axes are FIXED:
 * their order must stay (coupling.h). */
#include "graph/ops/shared/scatter_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 2, 2);
  if (st) return st;
  infer->out[0].dtype = infer->in[0]->dtype;
  const laci_shape *x = laci_in_shape(infer, 0), *indices = laci_in_shape(infer, 1);
  int64_t batch = laci_node_int(infer->node, "batch_dims", 0);
  if (!x || !indices || indices->rank < 1 || indices->dims[indices->rank - 1] < 0) return LAC_OK;
  int64_t width = indices->dims[indices->rank - 1];
  bool fits = batch >= 0 && batch < indices->rank && batch < x->rank && width >= 1 &&
              width <= x->rank - batch;
  for (int axis = 0; fits && axis < batch; axis++) {
    fits = x->dims[axis] < 0 || indices->dims[axis] < 0 || x->dims[axis] == indices->dims[axis];
  }
  if (!fits) {
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                          "tuples of %lld indices into a tensor of %d axes", (long long)width,
                          x->rank);
  }
  laci_shape out = {.rank = indices->rank - 1 + x->rank - (int)(batch + width)};
  if (out.rank > LACI_MAX_RANK) {
    return laci_node_fail(infer->node, infer->err, LAC_UNSUPPORTED, "a tensor of %d axes",
                          out.rank);
  }
  for (int axis = 0; axis < indices->rank - 1; axis++) out.dims[axis] = indices->dims[axis];
  for (int axis = indices->rank - 1, from = (int)(batch + width); axis < out.rank; axis++) {
    out.dims[axis] = x->dims[from++];
  }
  infer->out[0].shape = out;
  return LAC_OK;
}

static lac_status eval(laci_eval *eval) {
  const laci_buf *x = eval->in[0], *indices = eval->in[1];
  int batch = (int)laci_node_int(eval->node, "batch_dims", 0), rank = indices->shape.rank;
  if (rank < 1) return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE, "indices are a scalar");
  int64_t width = indices->shape.dims[rank - 1];
  int64_t n_batches = laci_shape_count_range(&x->shape, 0, batch);
  int64_t batch_stride = laci_shape_count_range(&x->shape, batch, x->shape.rank);
  int64_t n = laci_shape_count_range(&indices->shape, batch, rank - 1);
  int64_t part = laci_shape_count_range(&x->shape, batch + (int)width, x->shape.rank);
  for (int64_t at = 0; at < n_batches * n; at++) {
    int64_t offset;
    lac_status st = laci_index_tuple_offset(eval, indices, at * width, width, batch, &offset);
    if (st) return st;
    laci_copy_elements(eval->out[0], at * part, x, at / n * batch_stride + offset, part);
  }
  return LAC_OK;
}

const laci_op laci_op_gather_nd = {.name = "GatherND",
                                   .role = LACI_ROLE_PASS_THROUGH,
                                   .attributes = LACI_ATTRIBUTES({"batch_dims", LACI_ATTR_INT}),
                                   .moves_data = true,
                                   .is_fold = true,
                                   .infer = infer,
                                   .eval = eval,
                                   .couple = laci_couple_nothing};
