/* SPDX-License-Identifier: Apache-2.0
 * The sliding window of convolutions and pools: kernel, strides, dilations and pads of an operator,
 * read and checked once, and the sizes that follow from them. Users: conv.c, conv_transpose.c, the
 * pools. */
#ifndef LACI_GRAPH_OPS_SHARED_WINDOW_IN_H
#define LACI_GRAPH_OPS_SHARED_WINDOW_IN_H

#include "graph/op.h"

enum { LACI_MAX_SPATIAL = LACI_MAX_RANK - 2 };

typedef enum laci_auto_pad {
  LACI_PAD_NOTSET,
  LACI_PAD_VALID,
  LACI_PAD_SAME_UPPER,
  LACI_PAD_SAME_LOWER,
} laci_auto_pad;

typedef struct laci_window_axis {
  int64_t kernel; /* size of the kernel along the axis; -1: not known */
  int64_t stride, dilation, pad_begin, pad_end;
} laci_window_axis;

typedef struct laci_node_window {
  int n_spatial;
  laci_auto_pad auto_pad;
  bool ceil_mode;
  laci_window_axis axis[LACI_MAX_SPATIAL];
} laci_node_window;

/** Fills `window` from the node's attributes. `weight`, if given, is a convolution's weight and
 *  supplies the kernel where kernel_shape is absent (and must agree with it where it is not). Fails
 *  LAC_BAD_SHAPE naming the attribute. */
LAC_MUST_CHECK lac_status laci_window_read(const laci_node *node, int n_spatial,
                                           const laci_shape *weight, laci_node_window *window,
                                           lac_error *err);

/** Returns the output size along a spatial axis, for a known input size, and sets the pads of that
 * axis where auto_pad requires it. A result <= 0: the window does not fit. The kernel must be
 * known. */
int64_t laci_window_resolve_out_size(laci_node_window *window, int spatial, int64_t in_size);

/** Infers the sizes out->dims[2 ..] for every spatial axis of x, with symbols where sizes are
 * unknown. Fails
 *  LAC_BAD_SHAPE. */
LAC_MUST_CHECK lac_status laci_window_infer(laci_infer *infer, laci_node_window *window,
                                            const laci_shape *x, laci_shape *out);

#endif
