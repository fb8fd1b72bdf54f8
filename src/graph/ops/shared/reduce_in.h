/* SPDX-License-Identifier: Apache-2.0
 * Reductions over axes: common code for the Reduce operators and the global pools.
 *
 * An operator provides what happens for each element and at the end. The common code finds the axes
 * (attribute in old opsets, input in new ones), infers, loops and couples. A reduced axis has a
 * label of its own, for its order does not matter. */
#ifndef LACI_GRAPH_OPS_SHARED_REDUCE_IN_H
#define LACI_GRAPH_OPS_SHARED_REDUCE_IN_H

#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

/** What a reduction has computed of the elements so far, such as their sum in a. Only a few
 * operators use b, too. */
typedef struct laci_reduce_state {
  double a, b;
} laci_reduce_state;

/** A reduction, defined by its start, its step for each element, and the function at the end. */
typedef struct laci_reducer {
  laci_reduce_state start;
  void (*step)(laci_reduce_state *state, double x);
  double (*end)(const laci_reduce_state *state, int64_t n); /* NULL: the result is state->a */
  /* The same steps for integers, without rounding; the result is clamped to the output's type, as
   * in ONNX Runtime. step_integer NULL: integers are reduced as doubles. */
  laci_wide start_integer;
  laci_wide (*step_integer)(laci_wide state, laci_wide x);
  laci_wide (*end_integer)(laci_wide state, int64_t n); /* NULL: the result is the state */
} laci_reducer;

/* For operators with axes, keepdims and noop_with_empty_axes. */
lac_status laci_reduce_infer(laci_infer *infer);
LAC_MUST_CHECK lac_status laci_reduce_eval(const laci_eval *eval, const laci_reducer *reducer);
lac_status laci_reduce_couple_orders(const laci_graph *graph, const laci_node *node,
                                     laci_coupling *c);

/* For global pools: all axes from the third on are reduced and kept with size 1. */
lac_status laci_global_pool_infer(laci_infer *infer);
LAC_MUST_CHECK lac_status laci_global_pool_eval(const laci_eval *eval, const laci_reducer *reducer);
lac_status laci_global_pool_couple_orders(const laci_graph *graph, const laci_node *node,
                                          laci_coupling *c);

/* Functions with which several operators reduce: for each element, or at the end. */
void laci_reduce_add(laci_reduce_state *state, double x);
double laci_reduce_mean(const laci_reduce_state *state, int64_t n);
laci_wide laci_reduce_add_integer(laci_wide state, laci_wide x);
/** Returns a * b, clamped to the range of laci_wide. */
laci_wide laci_reduce_product(laci_wide a, laci_wide b);

#endif
