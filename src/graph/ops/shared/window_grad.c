/* SPDX-License-Identifier: Apache-2.0
 * Windows as attributes of internal operators; see window_grad_in.h. */
#include "graph/ops/shared/window_grad_in.h"

void laci_window_attrs_fill(laci_window_attrs *attrs, const laci_node_window *window) {
  int n = window->n_spatial;
  for (int at = 0; at < n; at++) {
    attrs->kernel[at] = window->axis[at].kernel;
    attrs->strides[at] = window->axis[at].stride;
    attrs->dilations[at] = window->axis[at].dilation;
    attrs->pads[at] = window->axis[at].pad_begin;
    attrs->pads[at + n] = window->axis[at].pad_end;
  }
  attrs->attr[0] = laci_attr_ints("kernel_shape", n, attrs->kernel);
  attrs->attr[1] = laci_attr_ints("strides", n, attrs->strides);
  attrs->attr[2] = laci_attr_ints("pads", 2 * n, attrs->pads);
  attrs->attr[3] = laci_attr_ints("dilations", n, attrs->dilations);
  attrs->n = 4;
}

lac_status laci_window_attrs_init(laci_window_attrs *attrs, const laci_node *node,
                                  const laci_shape *x, const laci_shape *weight, lac_error *err) {
  laci_node_window window;
  lac_status st = laci_window_read(node, x->rank - 2, weight, &window, err);
  if (st) return st;
  for (int at = 0; at < window.n_spatial; at++)
    laci_window_resolve_out_size(&window, at, x->dims[at + 2]); /* resolves auto_pad */
  laci_window_attrs_fill(attrs, &window);
  if (weight) attrs->attr[attrs->n++] = laci_attr_int("group", laci_node_int(node, "group", 1));
  else attrs->attr[attrs->n++] = laci_attr_int("ceil_mode", window.ceil_mode);
  return LAC_OK;
}

void laci_window_attrs_add_input_shape(laci_window_attrs *attrs, const laci_shape *shape) {
  attrs->shape = *shape;
  attrs->attr[attrs->n++] = laci_attr_ints("input_shape", shape->rank, attrs->shape.dims);
}

lac_status laci_gradient_read_window(laci_gradient_builder *b, const laci_node *node,
                                     const laci_shape *x, const laci_shape *weight,
                                     laci_window_attrs *attrs) {
  if (laci_window_attrs_init(attrs, node, x, weight, NULL))
    return laci_gradient_fail_unsupported(b, node, "its window does not fit");
  return LAC_OK;
}
