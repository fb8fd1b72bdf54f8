/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.NhwcFusedConv: FusedConv on images with channels as the last axis, y = f(conv(x, w)
 * + bias + z); the weight has the layout of Conv's.
 *
 * Channels: the last axis of x is reduced with axis 1 of the weight; axis 0 of the weight gives the
 * last axis of y. With groups, all channels are FIXED: their order must stay (coupling.h). */
#include "graph/coupling.h"
#include "graph/ops.h"
#include "graph/ops/shared/channels_last_in.h"
#include "graph/ops/shared/microsoft_in.h"
#include "tensor/buf.h"

enum { X, W, BIAS, SUM };

static lac_status infer_conv(laci_infer *infer) {
  laci_infer conv = *infer;
  if (conv.n_in > SUM) conv.n_in = SUM;
  return laci_op_conv.infer(&conv);
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 2, 4);
  if (!st) st = laci_channels_last_infer(infer, infer_conv);
  const laci_shape *y = &infer->out[0].shape;
  return st || y->rank < 0 ? st : laci_check_input_sizes(infer, SUM, y->rank, y->dims);
}

static lac_status eval(laci_eval *eval) {
  const laci_buf *sum = laci_operand(eval, SUM);
  lac_status st = laci_check_floats(eval);
  if (!st) st = laci_channels_last_eval(eval, laci_op_conv.eval);
  for (int64_t at = 0; sum && !st && at < sum->count; at++) eval->out[0]->f[at] += sum->f[at];
  return st ? st : laci_activation_apply_to_output(eval);
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  const laci_shape *x = laci_port_shape(c, X), *w = laci_port_shape(c, W);
  const laci_shape *y = laci_port_shape(c, LACI_OUT(0)), *sum = laci_port_shape(c, SUM);
  laci_fused_function activation;
  c->why = "places along height and width matter to NhwcFusedConv";
  if (!x || !w || !y || x->rank < 3 || w->rank != x->rank || laci_node_int(node, "group", 1) != 1 ||
      !laci_activation_read(node, &activation) ||
      (laci_has_input(node, SUM) && (!sum || sum->rank != y->rank)))
    return laci_coupling_status(c);
  int last = x->rank - 1, batch = laci_coupling_new_label(c), in = laci_coupling_new_label(c);
  int out = laci_coupling_new_label(c);
  laci_coupling_set_label(c, X, 0, batch);
  laci_coupling_set_label(c, X, last, in);
  laci_coupling_set_label(c, W, 1, in);
  laci_coupling_set_label(c, W, 0, out);
  laci_coupling_set_label(c, BIAS, 0, out);
  for (int port = 0; port < 2; port++) {
    laci_coupling_set_label(c, port ? SUM : LACI_OUT(0), 0, batch);
    laci_coupling_set_label(c, port ? SUM : LACI_OUT(0), last, out);
  }
  return laci_coupling_status(c);
}

static int find_weight_axes(const laci_graph *graph, const laci_node *node,
                            laci_weight_axes axes[2]) {
  return laci_op_conv.weights(graph, node, axes);
}

const laci_op laci_op_ms_nhwc_fused_conv = {
    .name = "NhwcFusedConv",
    .domain = LACI_MICROSOFT,
    .role = LACI_ROLE_ALLOW,
    .attributes = LACI_ATTRIBUTES(
        {"activation", LACI_ATTR_TEXT}, {"activation_params", LACI_ATTR_FLOATS},
        {"auto_pad", LACI_ATTR_TEXT}, {"dilations", LACI_ATTR_INTS}, {"group", LACI_ATTR_INT},
        {"kernel_shape", LACI_ATTR_INTS}, {"pads", LACI_ATTR_INTS}, {"strides", LACI_ATTR_INTS}),
    .weights = find_weight_axes,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};
