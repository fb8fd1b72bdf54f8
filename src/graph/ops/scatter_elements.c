/* SPDX-License-Identifier: Apache-2.0
 * ScatterElements: a copy of x in which update[i, j, ..] is put at (or combined with) [i, index[i,
 * j, ..], ..]. Which element is written depends on all indices, so all axes are FIXED: their order
 * must stay (coupling.h). Helpers of scatter_nd.c and gather_nd.c are here too. */
#include "graph/ops/shared/scatter_in.h"
#include "graph/ops/shared/walk_in.h"
#include "tensor/buf.h"

lac_status laci_scatter_read_reduction(const laci_node *node, laci_scatter *scatter,
                                       lac_error *err) {
  static const char *const names[] = {"none", "add", "mul", "max", "min"};
  const char *text = laci_node_text(node, "reduction", "none");
  for (int at = 0; at < 5; at++) {
    if (strcmp(text, names[at]) != 0) continue;
    *scatter = (laci_scatter)at;
    return LAC_OK;
  }
  return laci_node_fail(node, err, LAC_UNSUPPORTED, "reduction '%s'", text);
}

static double combine_doubles(laci_scatter scatter, double old, double update) {
  switch (scatter) {
    case LACI_SCATTER_ADD: return old + update;
    case LACI_SCATTER_MUL: return old * update;
    case LACI_SCATTER_MAX: return update > old || update != update ? update : old;
    case LACI_SCATTER_MIN: return update < old || update != update ? update : old;
    case LACI_SCATTER_SET: break;
  }
  return update;
}

static int64_t combine_integers(laci_scatter scatter, lac_dtype dtype, int64_t old,
                                int64_t update) {
  switch (scatter) {
    case LACI_SCATTER_ADD: return (int64_t)((uint64_t)old + (uint64_t)update);
    case LACI_SCATTER_MUL: return (int64_t)((uint64_t)old * (uint64_t)update);
    case LACI_SCATTER_MAX: return laci_int_compare(dtype, update, old) > 0 ? update : old;
    case LACI_SCATTER_MIN: return laci_int_compare(dtype, update, old) < 0 ? update : old;
    case LACI_SCATTER_SET: break;
  }
  return update;
}

void laci_scatter_combine_run(laci_scatter scatter, laci_buf *out, int64_t at,
                              const laci_buf *updates, int64_t from, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    if (out->f) out->f[at + i] = combine_doubles(scatter, out->f[at + i], updates->f[from + i]);
    else
      out->i[at + i] = laci_int_wrap(
          out->dtype, combine_integers(scatter, out->dtype, out->i[at + i], updates->i[from + i]));
  }
}

lac_status laci_index_tuple_offset(const laci_eval *eval, const laci_buf *indices, int64_t at,
                                   int64_t n, int first, int64_t *offset) {
  const laci_shape *x = &eval->in[0]->shape;
  int64_t strides[LACI_MAX_RANK];
  laci_shape_strides(x, strides);
  *offset = 0;
  for (int64_t k = 0; k < n; k++) {
    int64_t index = laci_buf_get_i(indices, at + k);
    lac_status st = laci_check_index(eval, x->dims[first + k], &index);
    if (st) return st;
    *offset += index * strides[first + k];
  }
  return LAC_OK;
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 3, 3);
  if (st) return st;
  infer->out[0] = *infer->in[0];
  const laci_shape *indices = laci_in_shape(infer, 1), *updates = laci_in_shape(infer, 2);
  bool known = indices && updates && laci_shape_is_known(indices) && laci_shape_is_known(updates);
  if (!known || laci_shape_equal(indices, updates)) return LAC_OK;
  return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                        "indices and updates differ in shape");
}

static lac_status eval(laci_eval *eval) {
  const laci_buf *x = eval->in[0], *indices = eval->in[1], *updates = eval->in[2];
  laci_buf *out = eval->out[0];
  laci_scatter scatter = LACI_SCATTER_SET;
  int64_t axis = laci_node_int(eval->node, "axis", 0), strides[LACI_MAX_RANK];
  lac_status st = laci_check_axis(eval->node, x->shape.rank, &axis, eval->err);
  if (!st) st = laci_scatter_read_reduction(eval->node, &scatter, eval->err);
  if (st) return st;
  bool fits = indices->shape.rank == x->shape.rank && !updates->f == !x->f;
  for (int at = 0; fits && at < x->shape.rank; at++) {
    fits = at == axis || indices->shape.dims[at] <= x->shape.dims[at];
  }
  if (!fits)
    return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE,
                          "indices or updates do not fit the data");
  laci_copy_elements(out, 0, x, 0, x->count);
  laci_shape_strides(&x->shape, strides);
  int64_t along = strides[axis];
  strides[axis] = 0;
  laci_walk walk;
  laci_walk_begin(&walk, &indices->shape);
  laci_walk_add_strided(&walk, strides, 0);
  laci_walk_merge_axes(&walk);
  for (int64_t run = 0; run < walk.n_runs; run++, laci_walk_next(&walk)) {
    for (int64_t i = 0; i < walk.run; i++) {
      int64_t from = run * walk.run + i, index = laci_buf_get_i(indices, from);
      st = laci_check_index(eval, x->shape.dims[axis], &index);
      if (st) return st;
      laci_scatter_combine_run(scatter, out, walk.at[0] + i * walk.inner[0] + index * along,
                               updates, from, 1);
    }
  }
  return LAC_OK;
}

const laci_op laci_op_scatter_elements = {
    .name = "ScatterElements",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"axis", LACI_ATTR_INT}, {"reduction", LACI_ATTR_TEXT}),
    .infer = infer,
    .eval = eval,
    .couple = laci_couple_nothing};
