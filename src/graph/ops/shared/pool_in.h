/* SPDX-License-Identifier: Apache-2.0
 * Pools: one frame that walks a window over every channel's places; the operator says what happens
 * to each element under it. Users: max_pool.c, average_pool.c, lp_pool.c. */
#ifndef LACI_GRAPH_OPS_SHARED_POOL_IN_H
#define LACI_GRAPH_OPS_SHARED_POOL_IN_H

#include "graph/ops/shared/op_in.h"
#include "graph/ops/shared/window_in.h"

typedef struct laci_pool_state {
  double value, parameter; /* parameter: the operator's own, unchanged by the frame */
  int64_t at;              /* position within the channel, row-major; set by the operator */
  int64_t n_inside;        /* elements under the window; set before `end` */
  int64_t n_padded;        /* the same with the padding counted */
} laci_pool_state;

typedef struct laci_pooling {
  laci_pool_state start;
  void (*step)(laci_pool_state *state, double x, int64_t at);
  double (*end)(const laci_pool_state *state); /* NULL: value */
} laci_pooling;

lac_status laci_pooling_infer(laci_infer *infer);
/** y, and indices (may be NULL): state.at of each window. */
LAC_MUST_CHECK lac_status laci_pooling_eval(const laci_eval *eval, const laci_pooling *pooling,
                                            laci_buf *indices);
/** The reverse: every y[o] is added to the positions of x under its window, divided by their number
 *  (with_pad: the padding counted). x is zeroed; y and x are the operands' gradients. */
LAC_MUST_CHECK lac_status laci_pooling_spread(const laci_eval *eval, const laci_buf *y, laci_buf *x,
                                              bool with_pad);
/** What MaxPool does at each element: at is -1 where a window is empty. */
extern const laci_pooling laci_max_pooling;
/** The gradients' shape rule: input 0 must have the shape of the pool's output over `x`. */
LAC_MUST_CHECK lac_status laci_pooling_check(laci_infer *infer, const laci_shape *x);
/** Batch and channel labels through, places FIXED. */
lac_status laci_pooling_couple(const laci_graph *graph, const laci_node *node, laci_coupling *c);

#endif
