/* SPDX-License-Identifier: Apache-2.0
 * GatherElements: out[i, j, ..] = x[i, index[i, j, ..], ..] along one axis. out has the shape of
 * the indices. Which element is read depends on all indices, so all axes are FIXED: their order
 * must stay (coupling.h). */
#include "graph/ops/shared/op_in.h"
#include "graph/ops/shared/walk_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  char data[128], index[128];
  lac_status st = laci_check_n_inputs(infer, 2, 2);
  if (st) return st;
  infer->out[0].dtype = infer->in[0]->dtype;
  infer->out[0].shape = infer->in[1]->shape;
  const laci_shape *x = laci_in_shape(infer, 0), *indices = laci_in_shape(infer, 1);
  if (!x || !indices) return LAC_OK;
  int64_t axis = laci_node_int(infer->node, "axis", 0);
  st = laci_check_axis(infer->node, x->rank, &axis, infer->err);
  if (st) return st;
  bool fits = x->rank == indices->rank;
  for (int at = 0; fits && at < x->rank; at++) {
    bool known = x->dims[at] >= 0 && indices->dims[at] >= 0;
    fits = at == axis || !known || indices->dims[at] <= x->dims[at];
  }
  if (fits) return LAC_OK;
  return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "indices %s into %s",
                        laci_shape_text(indices, index, sizeof index),
                        laci_shape_text(x, data, sizeof data));
}

static lac_status eval(laci_eval *eval) {
  const laci_buf *x = eval->in[0], *indices = eval->in[1];
  int64_t axis = laci_node_int(eval->node, "axis", 0), strides[LACI_MAX_RANK];
  lac_status st = laci_check_axis(eval->node, x->shape.rank, &axis, eval->err);
  if (st) return st;
  laci_shape_strides(&x->shape, strides);
  int64_t along = strides[axis];
  strides[axis] = 0;
  laci_walk walk;
  laci_walk_begin(&walk, &indices->shape);
  laci_walk_add_strided(&walk, strides, 0);
  laci_walk_merge_axes(&walk);
  for (int64_t run = 0; run < walk.n_runs; run++, laci_walk_next(&walk)) {
    for (int64_t i = 0; i < walk.run; i++) {
      int64_t to = run * walk.run + i, index = laci_buf_get_i(indices, to);
      st = laci_check_index(eval, x->shape.dims[axis], &index);
      if (st) return st;
      laci_copy_elements(eval->out[0], to, x, walk.at[0] + i * walk.inner[0] + index * along, 1);
    }
  }
  return LAC_OK;
}

const laci_op laci_op_gather_elements = {.name = "GatherElements",
                                         .role = LACI_ROLE_PASS_THROUGH,
                                         .attributes = LACI_ATTRIBUTES({"axis", LACI_ATTR_INT}),
                                         .moves_data = true,
                                         .is_fold = true,
                                         .infer = infer,
                                         .eval = eval,
                                         .couple = laci_couple_nothing};
