/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.FusedConv: y = f(conv(x, w) + bias + z), a Conv (ops/conv.c) with an optional
 * summand z of y's shape and an optional activation f. */
#include "graph/coupling.h"
#include "graph/ops.h"
#include "graph/ops/shared/microsoft_in.h"
#include "tensor/buf.h"

enum { X, W, BIAS, SUM };

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 2, 4);
  laci_infer conv = *infer;
  if (conv.n_in > SUM) conv.n_in = SUM;
  if (!st) st = laci_op_conv.infer(&conv);
  const laci_shape *y = &infer->out[0].shape;
  return st || y->rank < 0 ? st : laci_check_input_sizes(infer, SUM, y->rank, y->dims);
}

static lac_status eval(laci_eval *eval) {
  const laci_buf *sum = laci_operand(eval, SUM);
  lac_status st = laci_op_conv.eval(eval);
  for (int64_t at = 0; sum && !st && at < sum->count; at++) eval->out[0]->f[at] += sum->f[at];
  return st ? st : laci_activation_apply_to_output(eval);
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  laci_fused_function activation;
  c->why = "an unknown function after the convolution";
  if (!laci_activation_read(node, &activation)) return laci_coupling_status(c);
  lac_status st = laci_op_conv.couple(graph, node, c);
  const laci_shape *sum = laci_port_shape(c, SUM), *y = laci_port_shape(c, LACI_OUT(0));
  if (st || !sum || !y || sum->rank != y->rank) {
    /* a summand z of unknown shape: all axes of the output are FIXED */
    for (int axis = 0; !st && y && axis < y->rank && laci_has_input(node, SUM); axis++)
      laci_coupling_set_label(c, LACI_OUT(0), axis, LACI_FIXED);
    return st;
  }
  laci_coupling_mark_described(c, SUM);
  for (int axis = 0; axis < 2; axis++) {
    int label = laci_coupling_get_label(c, LACI_OUT(0), axis);
    if (label > 0) laci_coupling_set_label(c, SUM, axis, label);
  }
  if (laci_coupling_get_label(c, LACI_OUT(0), 1) == LACI_MAPPED)
    laci_coupling_add_map_of_consecutive(c,
                                         (laci_axis_map){.out_port = LACI_OUT(0),
                                                         .out_axis = 1,
                                                         .in_port = SUM,
                                                         .in_axis = 1,
                                                         .n_out = y->dims[1],
                                                         .n = y->dims[1]},
                                         0);
  return laci_coupling_status(c);
}

static int find_weight_axes(const laci_graph *graph, const laci_node *node,
                            laci_weight_axes axes[2]) {
  return laci_op_conv.weights(graph, node, axes);
}

const laci_op laci_op_ms_fused_conv = {
    .name = "FusedConv",
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
