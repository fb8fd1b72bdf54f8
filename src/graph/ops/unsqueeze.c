/* SPDX-License-Identifier: Apache-2.0
 * Unsqueeze: inserts axes of size 1 at the given axes of the output (attribute before opset 13,
 * then an input). The axes of x pass channel orders through (coupling.h); a new one gets a label of
 * its own. */
#include "graph/coupling.h"
#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

static laci_ints read_axes(const laci_node *node, const laci_buf *content) {
  return laci_read_int_list(node, "axes", node->version >= 13 || node->version == 0 ? 1 : -1,
                            content);
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 2);
  if (st) return st;
  bool fresh[LACI_MAX_RANK] = {false};
  infer->out[0].dtype = infer->in[0]->dtype;
  const laci_shape *x = laci_in_shape(infer, 0);
  laci_ints axes = read_axes(infer->node, laci_in_known_content(infer, 1));
  if (!x || !axes.known || axes.has_symbols) return LAC_OK;
  int rank = x->rank + axes.n;
  if (rank > LACI_MAX_RANK) {
    return laci_node_fail(infer->node, infer->err, LAC_UNSUPPORTED, "a tensor of %d axes", rank);
  }
  st = laci_axes_to_flags(infer->node, &axes, rank, false, fresh, infer->err);
  if (st) return st;
  laci_shape *out = &infer->out[0].shape;
  out->rank = rank;
  for (int axis = 0, from = 0; axis < rank; axis++) {
    out->dims[axis] = fresh[axis] ? 1 : x->dims[from++];
  }
  return LAC_OK;
}

static lac_status eval(laci_eval *eval) {
  laci_copy_elements(eval->out[0], 0, eval->in[0], 0, eval->in[0]->count);
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  bool fresh[LACI_MAX_RANK] = {false};
  const laci_shape *x = laci_port_shape(c, 0), *y = laci_port_shape(c, LACI_OUT(0));
  laci_ints axes = read_axes(node, laci_known_content(graph, node, 1));
  if (!x || !y || !axes.known || x->rank + axes.n != y->rank) return laci_coupling_status(c);
  if (laci_axes_to_flags(node, &axes, y->rank, false, fresh, NULL)) return laci_coupling_status(c);
  laci_coupling_mark_described(c, 0);
  for (int axis = 0, from = 0; axis < y->rank; axis++) {
    int label = laci_coupling_new_label(c);
    laci_coupling_set_label(c, LACI_OUT(0), axis, label);
    if (!fresh[axis]) laci_coupling_set_label(c, 0, from++, label);
  }
  return laci_coupling_status(c);
}

const laci_op laci_op_unsqueeze = {.name = "Unsqueeze",
                                   .role = LACI_ROLE_PASS_THROUGH,
                                   .attributes = LACI_ATTRIBUTES({"axes", LACI_ATTR_INTS}),
                                   .moves_data = true,
                                   .is_fold = true,
                                   .inputs_without_channels = 1u << 1,
                                   .infer = infer,
                                   .eval = eval,
                                   .couple = couple_channel_orders,
                                   .gradient = laci_gradient_of_reshape};
