/* SPDX-License-Identifier: Apache-2.0
 * Operators that work on one line of a tensor at a time: Softmax, LogSoftmax, Hardmax,
 * LpNormalization.
 *
 * A tensor is [outer, n, inner]; a line is the n elements for one (outer, inner), `stride` apart.
 * Before opset 13 the softmaxes take all axes from `axis` on as one line. */
#ifndef LACI_GRAPH_OPS_SHARED_LINE_IN_H
#define LACI_GRAPH_OPS_SHARED_LINE_IN_H

#include "graph/ops/shared/op_in.h"

typedef void laci_line_body(const double *x, double *y, int64_t n, int64_t stride,
                            const void *context);

/** The axes that a line runs over: one axis; or, flattened, all axes from the given one on. */
typedef struct laci_line_axis {
  int64_t axis;
  bool flattened;
} laci_line_axis;

/** Returns the axis of a Softmax, LogSoftmax or Hardmax node, with the default and meaning of its
 * opset. */
laci_line_axis laci_softmax_axis(const laci_node *node);
/** Fills in the axes that a line of the node runs over in a tensor of that rank, and returns their
 * number; 0: lines of one element. */
int laci_softmax_axes(const laci_node *node, int rank, int64_t axes[LACI_MAX_RANK]);
lac_status laci_softmax_infer(laci_infer *infer);
lac_status laci_softmax_couple_orders(const laci_graph *graph, const laci_node *node,
                                      laci_coupling *c);

LAC_MUST_CHECK lac_status laci_line_infer(laci_infer *infer, laci_line_axis line);
LAC_MUST_CHECK lac_status laci_line_eval(const laci_eval *eval, laci_line_axis line,
                                         laci_line_body *body, const void *context);
/** Passes channel orders from input 0 to output 0 on every axis. Marks the axes of a line as
 * normalized (coupling.h). */
LAC_MUST_CHECK lac_status laci_line_couple_orders(laci_coupling *c, laci_line_axis line);

#endif
