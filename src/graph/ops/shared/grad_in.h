/* SPDX-License-Identifier: Apache-2.0
 * What the internal operators of gradients share: attributes that hold shapes, checks against them,
 * and windows written out with their pads resolved. See gradient.h for the list of operators. */
#ifndef LACI_GRAPH_OPS_SHARED_GRAD_IN_H
#define LACI_GRAPH_OPS_SHARED_GRAD_IN_H

#include "graph/gradient.h"
#include "graph/ops/shared/op_in.h"
#include "graph/ops/shared/window_in.h"

/** The attribute as a shape of sizes >= 0 whose product fits. Fails LAC_BAD_SHAPE. */
LAC_MUST_CHECK lac_status laci_shape_attr(const laci_node *node, const char *name,
                                          laci_shape *shape, lac_error *err);
/** Input `port` must have that shape, where both are known. Fails LAC_BAD_SHAPE. */
LAC_MUST_CHECK lac_status laci_want_shape(laci_infer *infer, int port, const laci_shape *shape);
/** Inputs `first` .. `last` must all have the shape of input `first`; output 0 gets its type: what
 *  an element-by-element operator infers that does not broadcast. */
LAC_MUST_CHECK lac_status laci_infer_equal(laci_infer *infer, int first, int last);

/** Attributes of a window, written out. */
typedef struct laci_window_attrs {
  int n;
  laci_attr attr[8]; /* kernel_shape strides pads dilations ceil_mode; room for three more */
  int64_t kernel[LACI_MAX_SPATIAL], strides[LACI_MAX_SPATIAL], dilations[LACI_MAX_SPATIAL];
  int64_t pads[2 * LACI_MAX_SPATIAL];
  laci_shape shape; /* of laci_window_attrs_shape */
} laci_window_attrs;

/** Reads the window of a Conv (weight given) or pool over x and writes it out with auto_pad
 *  resolved. `attrs` must stay where it is: the attributes point into it. */
LAC_MUST_CHECK lac_status laci_window_attrs_init(laci_window_attrs *attrs, const laci_node *node,
                                                 const laci_shape *x, const laci_shape *weight,
                                                 lac_error *err);
/** From a window whose pads are resolved; neither group nor ceil_mode. */
void laci_window_attrs_fill(laci_window_attrs *attrs, const laci_node_window *window);
/** Adds input_shape. */
void laci_window_attrs_shape(laci_window_attrs *attrs, const laci_shape *shape);

/** An internal node of one output; attrs may be NULL. */
int laci_gradient_internal(laci_gradient_builder *b, const char *type, int n_inputs,
                           const int *inputs, const laci_window_attrs *attrs);
/** laci_window_attrs_init; a failure becomes the builder's. */
LAC_MUST_CHECK lac_status laci_gradient_window(laci_gradient_builder *b, const laci_node *node,
                                               const laci_shape *x, const laci_shape *weight,
                                               laci_window_attrs *attrs);

/** Gives a per-channel parameter at `port` its gradient: x summed over all axes but 1. */
void laci_gradient_give_channels(laci_gradient_builder *b, const laci_node *node, int port, int x);
/** x[start .. start + n) along an axis. */
int laci_gradient_slice(laci_gradient_builder *b, int x, int axis, int64_t start, int64_t n);
/** dy shared evenly among the elements of input 0 that equal y, which has size 1 along the axes
 * that were reduced; zeros elsewhere. */
int laci_gradient_where_largest(laci_gradient_builder *b, const laci_node *node, int dy, int y);
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
void laci_gradient_normalised(laci_gradient_builder *b, const laci_gradient_norm *norm, int out[3]);

/* Ready-made rules. */
lac_status laci_gradient_of_reshape(laci_gradient_builder *b,
                                    const laci_node *node); /* in 0 under other axes */
lac_status laci_gradient_extreme(laci_gradient_builder *b,
                                 const laci_node *node); /* Max, Min of any number */

#endif
