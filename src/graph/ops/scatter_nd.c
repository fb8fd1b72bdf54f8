/* SPDX-License-Identifier: Apache-2.0
 * ScatterND: a copy of x in which each update replaces (or is combined with) the slice that a tuple
 * of indices names. Which slice is written depends on the indices, so all axes are FIXED: their
 * order must stay (coupling.h). */
#include "graph/ops/shared/scatter_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 3, 3);
  if (!st) infer->out[0] = *infer->in[0];
  return st;
}

static lac_status eval(laci_eval *eval) {
  const laci_buf *x = eval->in[0], *indices = eval->in[1], *updates = eval->in[2];
  laci_scatter scatter = LACI_SCATTER_SET;
  lac_status st = laci_scatter_read_reduction(eval->node, &scatter, eval->err);
  if (st) return st;
  int rank = indices->shape.rank;
  int64_t width = rank ? indices->shape.dims[rank - 1] : 0;
  if (rank < 1 || width > x->shape.rank || !updates->f != !x->f) {
    return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE,
                          "indices or updates do not fit the data");
  }
  int64_t part = laci_shape_count_range(&x->shape, (int)width, x->shape.rank);
  int64_t n = laci_shape_count_range(&indices->shape, 0, rank - 1);
  if (updates->count != n * part) {
    return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE,
                          "%lld elements of updates, %lld wanted", (long long)updates->count,
                          (long long)(n * part));
  }
  laci_copy_elements(eval->out[0], 0, x, 0, x->count);
  for (int64_t at = 0; at < n; at++) {
    int64_t offset;
    st = laci_index_tuple_offset(eval, indices, at * width, width, 0, &offset);
    if (st) return st;
    laci_scatter_combine_run(scatter, eval->out[0], offset, updates, at * part, part);
  }
  return LAC_OK;
}

const laci_op laci_op_scatter_nd = {.name = "ScatterND",
                                    .role = LACI_ROLE_PASS_THROUGH,
                                    .attributes = LACI_ATTRIBUTES({"reduction", LACI_ATTR_TEXT}),
                                    .infer = infer,
                                    .eval = eval,
                                    .couple = laci_couple_nothing};
