/* SPDX-License-Identifier: Apache-2.0
 * QLinearConv: a convolution of quantized operands, quantized again (shared/integer_in.h); the
 * weight may have a scale and a zero point for each output channel. The bias is in units of the
 * product of both scales. */
#include "graph/ops/shared/integer_in.h"

static const laci_integer_ports ports = {.a = 0,
                                         .a_scale = 1,
                                         .a_zero = 2,
                                         .b = 3,
                                         .b_scale = 4,
                                         .b_zero = 5,
                                         .y_scale = 6,
                                         .y_zero = 7,
                                         .bias = 8,
                                         .y_axis = 1};

static lac_status infer(laci_infer *infer) {
  return laci_integer_infer(infer, &laci_op_conv, &ports);
}

static lac_status eval(laci_eval *eval) { return laci_integer_eval(eval, &laci_op_conv, &ports); }

static lac_status couple_axes(const laci_graph *graph, const laci_node *node, laci_coupling *c) {
  return laci_integer_couple(graph, node, c, &laci_op_conv, &ports);
}

static int find_weight_axes(const laci_graph *graph, const laci_node *node,
                            laci_weight_axes axes[2]) {
  (void)graph;
  return laci_integer_weights(node, &ports, 0, axes);
}

const laci_op laci_op_q_linear_conv = {
    .name = "QLinearConv",
    .role = LACI_ROLE_ALLOW,
    .byte_weights = true,
    .weights = find_weight_axes,
    .attributes = LACI_ATTRIBUTES({"auto_pad", LACI_ATTR_TEXT}, {"dilations", LACI_ATTR_INTS},
                                  {"group", LACI_ATTR_INT}, {"kernel_shape", LACI_ATTR_INTS},
                                  {"pads", LACI_ATTR_INTS}, {"strides", LACI_ATTR_INTS}),
    .infer = infer,
    .eval = eval,
    .couple = couple_axes};
