/* SPDX-License-Identifier: Apache-2.0
 * What a stored weight says of the shape of the data that its node reads: op.h, `expect`. */
#ifndef LACI_GRAPH_OPS_SHARED_EXPECT_IN_H
#define LACI_GRAPH_OPS_SHARED_EXPECT_IN_H

#include "graph/op.h"

/** Input 0 with `size` along `axis` (negative: from the back), where it is open; of `rank` axes
 * (-1: nothing says how many) where that is. Sizes still open are 0 or symbols. False: nothing is
 * known. */
static inline bool laci_expect_size(const laci_infer *infer, int rank, int axis, int64_t size,
                                    laci_shape *shape) {
  const laci_shape *x = &infer->in[0]->shape;
  *shape = x->rank >= 0 ? *x : (laci_shape){.rank = rank};
  if (axis < 0) axis += shape->rank;
  if (shape->rank < 0 || axis < 0 || axis >= shape->rank) return false;
  if (shape->dims[axis] <= 0 && size > 0) shape->dims[axis] = size;
  return true;
}

/** The shape of input `port`; NULL: it is absent, or its rank is open. */
static inline const laci_shape *laci_expect_from(const laci_infer *infer, int port) {
  bool known = infer->n_in > port && infer->in[0] && infer->in[port];
  return known && infer->in[port]->shape.rank >= 0 ? &infer->in[port]->shape : NULL;
}

#endif
