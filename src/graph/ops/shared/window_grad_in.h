/* SPDX-License-Identifier: Apache-2.0
 * Windows in gradients, as explicit attributes of an internal operator, with auto_pad resolved to
 * pads. */
#ifndef LACI_GRAPH_OPS_SHARED_WINDOW_GRAD_IN_H
#define LACI_GRAPH_OPS_SHARED_WINDOW_GRAD_IN_H

#include "graph/gradient.h"
#include "graph/ops/shared/window_in.h"

/** The attributes of a window, all explicit. */
typedef struct laci_window_attrs {
  int n;
  laci_attr attr[8]; /* [n] kernel_shape, strides, pads, dilations, ceil_mode; and room for three
                        more */
  int64_t kernel[LACI_MAX_SPATIAL], strides[LACI_MAX_SPATIAL], dilations[LACI_MAX_SPATIAL];
  int64_t pads[2 * LACI_MAX_SPATIAL];
  laci_shape shape; /* set by laci_window_attrs_add_input_shape */
} laci_window_attrs;

/** Reads the window of a Conv (weight given) or pool (NULL) over x and fills `attrs`, with auto_pad
 * resolved. `attrs` must stay where it is: the attributes point into it. */
LAC_MUST_CHECK lac_status laci_window_attrs_init(laci_window_attrs *attrs, const laci_node *node,
                                                 const laci_shape *x, const laci_shape *weight,
                                                 lac_error *err);
/** Fills `attrs` from a window whose pads are resolved, without group and ceil_mode. */
void laci_window_attrs_fill(laci_window_attrs *attrs, const laci_node_window *window);
/** Adds the attribute input_shape. */
void laci_window_attrs_add_input_shape(laci_window_attrs *attrs, const laci_shape *shape);

/** Calls laci_window_attrs_init; the builder keeps a failure. */
LAC_MUST_CHECK lac_status laci_gradient_read_window(laci_gradient_builder *b, const laci_node *node,
                                                    const laci_shape *x, const laci_shape *weight,
                                                    laci_window_attrs *attrs);

#endif
