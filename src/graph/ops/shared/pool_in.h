/* SPDX-License-Identifier: Apache-2.0
 * Pools: common code that moves a window over every channel's positions; the operator defines what
 * happens to each element inside. Users: max_pool.c, average_pool.c, lp_pool.c. */
#ifndef LACI_GRAPH_OPS_SHARED_POOL_IN_H
#define LACI_GRAPH_OPS_SHARED_POOL_IN_H

#include "graph/ops/shared/op_in.h"

typedef struct laci_pool_state {
  double value, parameter; /* parameter: set by the operator, not changed by the common code */
  /* position in the channel, row-major, of the element that the pool chose; set by the operator's
   * step */
  int64_t at;
  int64_t n_inside; /* number of elements under the window; set before `end` is called */
  int64_t n_padded; /* n_inside plus the padding under the window */
} laci_pool_state;

typedef struct laci_pooling {
  laci_pool_state start;
  void (*step)(laci_pool_state *state, double x, int64_t at);
  double (*end)(const laci_pool_state *state); /* NULL: the result is state->value */
} laci_pooling;

lac_status laci_pooling_infer(laci_infer *infer);
/** Computes y, and stores state.at of each window in indices, which may be NULL. */
LAC_MUST_CHECK lac_status laci_pooling_eval(const laci_eval *eval, const laci_pooling *pooling,
                                            laci_buf *indices);
/** The gradient of average pooling: adds every y[o] to the positions of x under its window, divided
 * by their number (with_pad: including the padding). y is the gradient of the output; x, that of
 * the input, must be zero before the call. */
LAC_MUST_CHECK lac_status laci_pooling_average_gradient(const laci_eval *eval, const laci_buf *y,
                                                        laci_buf *x, bool with_pad);
/** The steps of MaxPool; state.at is -1 where a window is empty. */
extern const laci_pooling laci_max_pooling;
/** Checks, for gradients of pools, that input 0 has the shape of the pool's output for input
 * `x`. */
LAC_MUST_CHECK lac_status laci_pooling_check_gradient_shape(laci_infer *infer, const laci_shape *x);
/** Passes the orders of batch and channels to the output; along spatial axes nothing may be
 * reordered (coupling.h). */
lac_status laci_pooling_couple_orders(const laci_graph *graph, const laci_node *node,
                                      laci_coupling *c);

#endif
