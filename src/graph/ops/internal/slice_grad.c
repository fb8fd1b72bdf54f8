/* SPDX-License-Identifier: Apache-2.0
 * lacuna.SliceGrad: dX of shape input_shape is zero, except where dY is written, from `starts` on
 * in `steps` (one of each for every axis): dX[start + i * step] = dY[i]. Steps may be negative. */
#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/walk_in.h"
#include "tensor/buf.h"

static lac_status read_starts_and_steps(const laci_node *node, const laci_shape *dx,
                                        const laci_shape *dy, const int64_t **starts,
                                        const int64_t **steps, lac_error *err) {
  size_t n_starts = 0, n_steps = 0, rank = (size_t)dx->rank;
  *starts = laci_node_ints(node, "starts", &n_starts);
  *steps = laci_node_ints(node, "steps", &n_steps);
  bool fits = *starts && *steps && n_starts == rank && n_steps == rank && dy->rank == dx->rank;
  for (int axis = 0; fits && axis < dx->rank; axis++) {
    int64_t first = (*starts)[axis], last = 0, size = dx->dims[axis];
    if (dy->dims[axis] <= 0) continue; /* empty, or not known yet */
    fits = !__builtin_mul_overflow(dy->dims[axis] - 1, (*steps)[axis], &last) &&
           !__builtin_add_overflow(last, first, &last) && first >= 0 && first < size && last >= 0 &&
           last < size;
  }
  if (fits) return LAC_OK;
  return laci_node_fail(node, err, LAC_BAD_SHAPE, "starts and steps lead outside of input_shape");
}

static lac_status infer(laci_infer *infer) {
  const int64_t *starts, *steps;
  laci_shape *dx = &infer->out[0].shape;
  lac_status st = laci_check_n_inputs(infer, 1, 1);
  if (!st) st = laci_node_read_shape_attr(infer->node, "input_shape", dx, infer->err);
  if (st) return st;
  infer->out[0].dtype = infer->in[0]->dtype;
  if (infer->in[0]->shape.rank < 0) return LAC_OK;
  return read_starts_and_steps(infer->node, dx, &infer->in[0]->shape, &starts, &steps, infer->err);
}

static lac_status eval(laci_eval *eval) {
  const int64_t *starts, *steps;
  const laci_buf *dy = eval->in[0];
  laci_buf *dx = eval->out[0];
  int64_t strides[LACI_MAX_RANK], offset = 0;
  lac_status st =
      read_starts_and_steps(eval->node, &dx->shape, &dy->shape, &starts, &steps, eval->err);
  if (st || dy->count == 0) return st;
  laci_shape_strides(&dx->shape, strides);
  for (int axis = 0; axis < dx->shape.rank; axis++) {
    offset += starts[axis] * strides[axis];
    /* with a single position along the axis, the stride is not used */
    strides[axis] *= dy->shape.dims[axis] > 1 ? steps[axis] : 0;
  }
  laci_walk walk;
  laci_walk_begin(&walk, &dy->shape);
  laci_walk_add_strided(&walk, strides, offset);
  laci_walk_merge_axes(&walk);
  laci_walk_seek_run(&walk, 0);
  for (int64_t run = 0; run < walk.n_runs; run++, laci_walk_next(&walk)) {
    for (int64_t i = 0; i < walk.run; i++)
      laci_copy_elements(dx, walk.at[0] + i * walk.inner[0], dy, run * walk.run + i, 1);
  }
  return LAC_OK;
}

const laci_op laci_op_slice_grad = {.name = "SliceGrad",
                                    .domain = "lacuna",
                                    .role = LACI_ROLE_PASS_THROUGH,
                                    .infer = infer,
                                    .eval = eval,
                                    .couple = laci_couple_nothing};
