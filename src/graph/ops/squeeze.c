/* SPDX-License-Identifier: Apache-2.0
 * Squeeze: drops axes of size 1; all of them where no axes are given (attribute before opset 13,
 * then an input). The other axes pass channel orders through (coupling.h); a dropped one gets a
 * label of its own. See also unsqueeze.c. */
#include "graph/coupling.h"
#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

static laci_ints read_axes(const laci_node *node, const laci_buf *content) {
  return laci_read_int_list(node, "axes", node->version >= 13 || node->version == 0 ? 1 : -1,
                            content);
}

/** Finds the axes that are dropped; returns false where they are not known. */
static bool find_removed_axes(const laci_node *node, const laci_ints *axes, const laci_shape *x,
                              bool dropped[LACI_MAX_RANK]) {
  if (axes->present) {
    return axes->known && !axes->has_symbols &&
           !laci_axes_to_flags(node, axes, x->rank, false, dropped, NULL);
  }
  for (int axis = 0; axis < x->rank; axis++) {
    if (x->dims[axis] < 0) return false;
    dropped[axis] = x->dims[axis] == 1;
  }
  return true;
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 2);
  if (st) return st;
  bool dropped[LACI_MAX_RANK] = {false};
  infer->out[0].dtype = infer->in[0]->dtype;
  const laci_shape *x = laci_in_shape(infer, 0);
  if (!x) return LAC_OK;
  laci_ints axes = read_axes(infer->node, laci_in_known_content(infer, 1));
  if (axes.known && !axes.has_symbols) {
    st = laci_axes_to_flags(infer->node, &axes, x->rank, false, dropped, infer->err);
    if (st) return st;
  }
  if (!find_removed_axes(infer->node, &axes, x, dropped)) return LAC_OK;
  laci_shape *out = &infer->out[0].shape;
  out->rank = 0;
  for (int axis = 0; axis < x->rank; axis++) {
    if (!dropped[axis]) {
      out->dims[out->rank++] = x->dims[axis];
    } else if (x->dims[axis] >= 0 && x->dims[axis] != 1) {
      return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                            "axis %d has size %lld, 1 wanted", axis, (long long)x->dims[axis]);
    }
  }
  return LAC_OK;
}

static lac_status eval(laci_eval *eval) {
  laci_copy_elements(eval->out[0], 0, eval->in[0], 0, eval->in[0]->count);
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  bool dropped[LACI_MAX_RANK] = {false};
  const laci_shape *x = laci_port_shape(c, 0), *y = laci_port_shape(c, LACI_OUT(0));
  laci_ints axes = read_axes(node, laci_known_content(graph, node, 1));
  if (!x || !y || !find_removed_axes(node, &axes, x, dropped)) return laci_coupling_status(c);
  for (int axis = 0, to = 0; axis < x->rank; axis++) {
    int label = laci_coupling_new_label(c);
    laci_coupling_set_label(c, 0, axis, label);
    if (!dropped[axis]) laci_coupling_set_label(c, LACI_OUT(0), to++, label);
  }
  return laci_coupling_status(c);
}

const laci_op laci_op_squeeze = {.name = "Squeeze",
                                 .role = LACI_ROLE_PASS_THROUGH,
                                 .attributes = LACI_ATTRIBUTES({"axes", LACI_ATTR_INTS}),
                                 .moves_data = true,
                                 .is_fold = true,
                                 .inputs_without_channels = 1u << 1,
                                 .infer = infer,
                                 .eval = eval,
                                 .couple = couple_channel_orders,
                                 .gradient = laci_gradient_of_reshape};
