/* SPDX-License-Identifier: Apache-2.0
 * Helpers for laci_op.expect (op.h): what the shape of a stored weight tells of the shape of the
 * data that its node reads. */
#ifndef LACI_GRAPH_OPS_SHARED_EXPECT_IN_H
#define LACI_GRAPH_OPS_SHARED_EXPECT_IN_H

#include "graph/op.h"

/** Fills in the shape of input 0, with `size` along `axis` (negative: from the last axis) where
 * that size is unknown. Where its rank is unknown, it gets `rank` axes (-1: unknown). Sizes still
 * unknown are 0 or symbols. Returns false where nothing is known. */
static inline bool laci_expect_size(const laci_infer *infer, int rank, int axis, int64_t size,
                                    laci_shape *shape) {
  const laci_shape *x = &infer->in[0]->shape;
  *shape = x->rank >= 0 ? *x : (laci_shape){.rank = rank};
  if (axis < 0) axis += shape->rank;
  if (shape->rank < 0 || axis < 0 || axis >= shape->rank) return false;
  if (shape->dims[axis] <= 0 && size > 0) shape->dims[axis] = size;
  return true;
}

/** Returns the shape of input `port`; NULL: the input is absent, or its rank is unknown. */
static inline const laci_shape *laci_expect_known_shape_of_input(const laci_infer *infer,
                                                                 int port) {
  bool known = infer->n_in > port && infer->in[0] && infer->in[port];
  return known && infer->in[port]->shape.rank >= 0 ? &infer->in[port]->shape : NULL;
}

#endif
