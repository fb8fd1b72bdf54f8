/* SPDX-License-Identifier: Apache-2.0
 * Walking over strided and broadcast operands, and copying elements. */
#ifndef LACI_GRAPH_OPS_SHARED_WALK_IN_H
#define LACI_GRAPH_OPS_SHARED_WALK_IN_H

#include "graph/op.h"

enum { LACI_WALK_OPERANDS = 4 };

/** A walk over all elements of a shape, the space (usually the output's shape), which keeps the
 * flat index of the present element in each of up to four operands. The last axis is the caller's
 * inner loop: one step of the walk is a run of `run` elements, operand k from at[k] on with stride
 * inner[k]. Neighbouring axes that have one common stride in every operand are merged, so that runs
 * are long.
 *
 *    laci_walk w;
 *    laci_walk_begin(&w, &out->shape);
 *    laci_walk_add_broadcast(&w, &a->shape);            operand 0
 *    laci_walk_add_broadcast(&w, &b->shape);            operand 1
 *    laci_walk_merge_axes(&w);
 *    for (laci_walk_seek_run(&w, begin); begin < end; begin++, laci_walk_next(&w))
 *      for (int64_t i = 0; i < w.run; i++)
 *        out[begin * w.run + i] = f(a[w.at[0] + i * w.inner[0]], ...);
 *
 * There are n_runs runs. */
typedef struct laci_walk {
  int rank, n_operands;
  int64_t size[LACI_MAX_RANK], index[LACI_MAX_RANK];
  int64_t stride[LACI_WALK_OPERANDS][LACI_MAX_RANK];
  int64_t offset[LACI_WALK_OPERANDS];
  int64_t n_runs, run;
  int64_t at[LACI_WALK_OPERANDS], inner[LACI_WALK_OPERANDS];
} laci_walk;

void laci_walk_begin(laci_walk *walk, const laci_shape *space);
/** Adds an operand that is broadcast into the space (right-aligned, size-1 axes have stride 0). An
 * operand that does not fit is never read out of bounds; infer has to reject it. */
void laci_walk_add_broadcast(laci_walk *walk, const laci_shape *operand);
/** Adds an operand with the given strides, one for each axis of the space. */
void laci_walk_add_strided(laci_walk *walk, const int64_t *strides, int64_t offset);
void laci_walk_merge_axes(laci_walk *walk);
void laci_walk_seek_run(laci_walk *walk, int64_t run);
void laci_walk_next(laci_walk *walk);

/** Fills in the row-major strides of a shape. */
void laci_shape_strides(const laci_shape *shape, int64_t strides[LACI_MAX_RANK]);

/** Copies elements of `in` to `out`, as Transpose, Slice, Expand and DepthToSpace do: the element
 * for an index of `space`, in row-major order, is in[offset + sum of index * stride over the axes].
 * space has as many elements as out, but may have other axes. */
void laci_copy_strided_to_rows(const laci_eval *eval, const laci_buf *in, const laci_shape *space,
                               const int64_t *strides, int64_t offset, laci_buf *out);

#endif
