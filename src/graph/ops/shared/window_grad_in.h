/* SPDX-License-Identifier: Apache-2.0
 * Windows in gradients: written out as attributes of an internal operator, with their pads
 * resolved. */
#ifndef LACI_GRAPH_OPS_SHARED_WINDOW_GRAD_IN_H
#define LACI_GRAPH_OPS_SHARED_WINDOW_GRAD_IN_H

#include "graph/gradient.h"
#include "graph/ops/shared/window_in.h"

/** Attributes of a window, written out. */
typedef struct laci_window_attrs {
  int n;
  laci_attr attr[8]; /* kernel_shape strides pads dilations ceil_mode; capacity for three more */
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

/** laci_window_attrs_init; a failure becomes the builder's. */
LAC_MUST_CHECK lac_status laci_gradient_window(laci_gradient_builder *b, const laci_node *node,
                                               const laci_shape *x, const laci_shape *weight,
                                               laci_window_attrs *attrs);

#endif
