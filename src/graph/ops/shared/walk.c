/* SPDX-License-Identifier: Apache-2.0
 * Walking over strided and broadcast operands, run by run (walk_in.h draws the loop).
 *
 * Axes are merged where the outer stride of every operand is the inner stride times the inner size:
 * then both are one longer axis for all operands, and the caller's inner loop gets longer. Users:
 * elementwise.c and operators that move data. */
#include "graph/ops/shared/walk_in.h"
#include "tensor/buf.h"

void laci_shape_strides(const laci_shape *shape, int64_t strides[LACI_MAX_RANK]) {
  int64_t stride = 1;
  for (int axis = shape->rank - 1; axis >= 0; axis--) {
    strides[axis] = stride;
    stride *= shape->dims[axis];
  }
}

void laci_walk_begin(laci_walk *walk, const laci_shape *space) {
  *walk = (laci_walk){.rank = space->rank};
  for (int axis = 0; axis < space->rank; axis++) walk->size[axis] = space->dims[axis];
}

void laci_walk_add_broadcast(laci_walk *walk, const laci_shape *operand) {
  int64_t own[LACI_MAX_RANK], strides[LACI_MAX_RANK] = {0};
  laci_shape_strides(operand, own);
  int skip = walk->rank - operand->rank;
  for (int axis = skip < 0 ? -skip : 0; axis < operand->rank; axis++) {
    bool along = operand->dims[axis] == walk->size[axis + skip];
    strides[axis + skip] = along && operand->dims[axis] != 1 ? own[axis] : 0;
  }
  laci_walk_add_strided(walk, strides, 0);
}

void laci_walk_add_strided(laci_walk *walk, const int64_t *strides, int64_t offset) {
  int operand = walk->n_operands++;
  for (int axis = 0; axis < walk->rank; axis++) walk->stride[operand][axis] = strides[axis];
  walk->offset[operand] = offset;
}

/** Can axes `axis` and `next` be merged into one for every operand? */
static bool can_merge_axes(const laci_walk *walk, int axis, int next) {
  for (int k = 0; k < walk->n_operands; k++) {
    if (walk->stride[k][axis] != walk->stride[k][next] * walk->size[next]) return false;
  }
  return true;
}

static void copy_axis(laci_walk *walk, int to, int from) {
  walk->size[to] = walk->size[from];
  for (int k = 0; k < walk->n_operands; k++) walk->stride[k][to] = walk->stride[k][from];
}

void laci_walk_merge_axes(laci_walk *walk) {
  int n = 0; /* number of axes that remain after the merges so far */
  for (int axis = 0; axis < walk->rank; axis++) {
    if (walk->size[axis] == 1) continue;
    if (n > 0 && can_merge_axes(walk, n - 1, axis)) {
      int64_t outer = walk->size[n - 1];
      copy_axis(walk, n - 1, axis);
      walk->size[n - 1] *= outer;
    } else {
      copy_axis(walk, n++, axis);
    }
  }
  walk->rank = n > 0 ? n - 1 : 0;
  walk->run = n > 0 ? walk->size[n - 1] : 1;
  for (int k = 0; k < walk->n_operands; k++) walk->inner[k] = n > 0 ? walk->stride[k][n - 1] : 0;
  walk->n_runs = walk->run > 0 ? 1 : 0;
  for (int axis = 0; axis < walk->rank; axis++) walk->n_runs *= walk->size[axis];
  laci_walk_seek_run(walk, 0);
}

void laci_walk_seek_run(laci_walk *walk, int64_t run) {
  for (int k = 0; k < walk->n_operands; k++) walk->at[k] = walk->offset[k];
  for (int axis = walk->rank - 1; axis >= 0; axis--) {
    if (walk->size[axis] == 0) return;
    walk->index[axis] = run % walk->size[axis];
    run /= walk->size[axis];
    for (int k = 0; k < walk->n_operands; k++) {
      walk->at[k] += walk->index[axis] * walk->stride[k][axis];
    }
  }
}

void laci_walk_next(laci_walk *walk) {
  for (int axis = walk->rank - 1; axis >= 0; axis--) {
    for (int k = 0; k < walk->n_operands; k++) walk->at[k] += walk->stride[k][axis];
    if (++walk->index[axis] < walk->size[axis]) return;
    for (int k = 0; k < walk->n_operands; k++) {
      walk->at[k] -= walk->size[axis] * walk->stride[k][axis];
    }
    walk->index[axis] = 0;
  }
}

typedef struct strided_copy {
  laci_walk walk;
  const laci_buf *in;
  laci_buf *out;
} strided_copy;

static void copy_strided_runs(int64_t begin, int64_t end, void *context) {
  const strided_copy *job = context;
  laci_walk walk = job->walk;
  laci_walk_seek_run(&walk, begin);
  for (int64_t run = begin; run < end; run++, laci_walk_next(&walk)) {
    int64_t from = walk.at[0], step = walk.inner[0], to = run * walk.run;
    if (step == 1) {
      laci_copy_elements(job->out, to, job->in, from, walk.run);
    } else if (job->out->f) {
      for (int64_t i = 0; i < walk.run; i++) job->out->f[to + i] = job->in->f[from + i * step];
    } else {
      for (int64_t i = 0; i < walk.run; i++) job->out->i[to + i] = job->in->i[from + i * step];
    }
  }
}

void laci_copy_strided_to_rows(const laci_eval *eval, const laci_buf *in, const laci_shape *space,
                               const int64_t *strides, int64_t offset, laci_buf *out) {
  strided_copy job = {.in = in, .out = out};
  laci_walk_begin(&job.walk, space);
  laci_walk_add_strided(&job.walk, strides, offset);
  laci_walk_merge_axes(&job.walk);
  laci_eval_parallel(eval, job.walk.n_runs, copy_strided_runs, &job);
}
