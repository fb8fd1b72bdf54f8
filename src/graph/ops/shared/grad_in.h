/* SPDX-License-Identifier: Apache-2.0
 * What the internal operators of gradients share: attributes that hold shapes, checks against them,
 * and parts of rules. See gradient.h for the list of operators, window_grad_in.h for windows. */
#ifndef LACI_GRAPH_OPS_SHARED_GRAD_IN_H
#define LACI_GRAPH_OPS_SHARED_GRAD_IN_H

#include "graph/ops/shared/op_in.h"

typedef struct laci_gradient_builder laci_gradient_builder;
typedef struct laci_window_attrs laci_window_attrs;

/** Reads an attribute as a shape of sizes >= 0 whose product fits. Fails LAC_BAD_SHAPE. */
LAC_MUST_CHECK lac_status laci_node_read_shape_attr(const laci_node *node, const char *name,
                                                    laci_shape *shape, lac_error *err);
/** Checks that input `port` has that shape, where both are known. Fails LAC_BAD_SHAPE. */
LAC_MUST_CHECK lac_status laci_check_input_shape(laci_infer *infer, int port,
                                                 const laci_shape *shape);
/** Checks that inputs `first` .. `last` have equal shapes, and gives output 0 the type of input
 * `first`: the infer of an elementwise operator without broadcasting. */
LAC_MUST_CHECK lac_status laci_infer_equal_shapes(laci_infer *infer, int first, int last);

/** Adds a node of domain "lacuna" with one output, and returns it; attrs may be NULL. */
int laci_gradient_add_internal(laci_gradient_builder *b, const char *type, int n_inputs,
                               const int *inputs, const laci_window_attrs *attrs);

/** Contributes the gradient of a per-channel parameter at `port`: x summed over all axes but 1. */
void laci_gradient_contribute_channel_sums(laci_gradient_builder *b, const laci_node *node,
                                           int port, int x);
/** Returns x[start .. start + n) along an axis. */
int laci_gradient_add_slice(laci_gradient_builder *b, int x, int axis, int64_t start, int64_t n);
/** Returns the mean over the flagged axes, which stay with size 1. */
int laci_gradient_add_mean(laci_gradient_builder *b, int x, const bool flags[LACI_MAX_RANK]);
/** Returns dy divided evenly among the elements of input 0 that equal y, and zeros elsewhere. y and
 * dy have size 1 along the reduced axes. */
int laci_gradient_share_among_equal(laci_gradient_builder *b, const laci_node *node, int dy, int y);
/** Returns the gradient of the input of a Resize along one axis, on which the input has `in`
 * positions. dy: the gradient of its output; attrs: the attributes of the Resize. Each input
 * position gets the sum of dy times its weights. */
int laci_gradient_add_resize_gradient(laci_gradient_builder *b, int dy, int axis, int64_t in,
                                      const laci_attr *attrs, int n_attrs);
/** Returns y, the output of a reduction or its gradient, with the reduced axes put back as axes of
 * size 1. */
int laci_gradient_restore_axes(laci_gradient_builder *b, const laci_node *node, int y);
/** Returns y, the output of a reduction or its gradient, expanded to the shape of the reduction's
 * input. */
int laci_gradient_expand_reduced(laci_gradient_builder *b, const laci_node *node, int y);

/** Adds a LayerNormalizationGrad node; its outputs dX, dscale and dbias are returned in out, -1
 * after a failure. */
typedef struct laci_gradient_norm {
  int dy, x, scale;
  int64_t axis;
  float epsilon;
} laci_gradient_norm;
void laci_gradient_add_normalization(laci_gradient_builder *b, const laci_gradient_norm *norm,
                                     int out[3]);

/* Ready-made rules. */
lac_status laci_gradient_of_reshape(laci_gradient_builder *b,
                                    const laci_node *node); /* the output is input 0, reshaped */
lac_status laci_gradient_of_max_or_min(
    laci_gradient_builder *b, const laci_node *node); /* Max and Min, any number of inputs */

#endif
