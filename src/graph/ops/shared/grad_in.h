/* SPDX-License-Identifier: Apache-2.0
 * What the internal operators of gradients share: attributes that hold shapes, checks against them,
 * and parts of rules. See gradient.h for the list of operators, window_grad_in.h for windows. */
#ifndef LACI_GRAPH_OPS_SHARED_GRAD_IN_H
#define LACI_GRAPH_OPS_SHARED_GRAD_IN_H

#include "graph/gradient.h"
#include "graph/ops/shared/op_in.h"

typedef struct laci_window_attrs laci_window_attrs;

/** The attribute as a shape of sizes >= 0 whose product fits. Fails LAC_BAD_SHAPE. */
LAC_MUST_CHECK lac_status laci_shape_attr(const laci_node *node, const char *name,
                                          laci_shape *shape, lac_error *err);
/** Input `port` must have that shape, where both are known. Fails LAC_BAD_SHAPE. */
LAC_MUST_CHECK lac_status laci_want_shape(laci_infer *infer, int port, const laci_shape *shape);
/** Inputs `first` .. `last` must all have the shape of input `first`; output 0 gets its type: what
 *  an element-by-element operator infers that does not broadcast. */
LAC_MUST_CHECK lac_status laci_infer_equal(laci_infer *infer, int first, int last);

/** An internal node of one output; attrs may be NULL. */
int laci_gradient_internal(laci_gradient_builder *b, const char *type, int n_inputs,
                           const int *inputs, const laci_window_attrs *attrs);

/** Gives a per-channel parameter at `port` its gradient: x summed over all axes but 1. */
void laci_gradient_give_channels(laci_gradient_builder *b, const laci_node *node, int port, int x);
/** x[start .. start + n) along an axis. */
int laci_gradient_slice(laci_gradient_builder *b, int x, int axis, int64_t start, int64_t n);
/** The mean over the flagged axes, which stay as size 1. */
int laci_gradient_mean(laci_gradient_builder *b, int x, const bool flags[LACI_MAX_RANK]);
/** dy shared evenly among the elements of input 0 that equal y, which has size 1 along the axes
 * that were reduced; zeros elsewhere. */
int laci_gradient_where_largest(laci_gradient_builder *b, const laci_node *node, int dy, int y);
/** dy along an axis that a Resize with these attributes brought from `in` places to as many as dy
 * has: each place of the input gets what it gave. */
int laci_gradient_resampled(laci_gradient_builder *b, int dy, int axis, int64_t in,
                            const laci_attr *attrs, int n_attrs);
/** For reductions: y with its reduced axes put back as size 1; and expanded to the input's shape.
 */
int laci_gradient_kept(laci_gradient_builder *b, const laci_node *node, int y);
int laci_gradient_reduced(laci_gradient_builder *b, const laci_node *node, int y);

/** A LayerNormalizationGrad node: dX, dscale, dbias come back in out, -1 after a failure. */
typedef struct laci_gradient_norm {
  int dy, x, scale;
  int64_t axis;
  float epsilon;
} laci_gradient_norm;
void laci_gradient_normalized(laci_gradient_builder *b, const laci_gradient_norm *norm, int out[3]);

/* Ready-made rules. */
lac_status laci_gradient_of_reshape(laci_gradient_builder *b,
                                    const laci_node *node); /* in 0 under other axes */
lac_status laci_gradient_extreme(laci_gradient_builder *b,
                                 const laci_node *node); /* Max, Min of any number */

#endif
