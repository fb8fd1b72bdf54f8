/* SPDX-License-Identifier: Apache-2.0
 * QLinearConv: a convolution of quantized operands, quantized again (shared/integer_in.h); the
 * weight may have a scale and a zero point for each output channel. The bias is in units of the
 * product of both scales. */
#include "graph/ops/shared/integer_in.h"

const laci_quantized_form laci_q_linear_conv_form = {
    .like = &laci_op_conv,
    .n_operands = 3,
    .operands = {{0, 1, 2, 0}, {3, 4, 5, 0}, {8, -1, -1, 0}},
    .bias = 2,
    .quantizes = true,
    .y_scale = 6,
    .y_zero = 7};

int laci_q_linear_conv_find_weight_axes(const laci_graph *graph, const laci_node *node,
                                        laci_weight_axes axes[2]) {
  (void)graph;
  return laci_quantized_find_weight_axes(node, 0, axes);
}

const laci_op laci_op_q_linear_conv = {
    .name = "QLinearConv",
    .role = LACI_ROLE_ALLOW,
    .byte_weights = true,
    .weights = laci_q_linear_conv_find_weight_axes,
    .attributes = LACI_ATTRIBUTES({"auto_pad", LACI_ATTR_TEXT}, {"dilations", LACI_ATTR_INTS},
                                  {"group", LACI_ATTR_INT}, {"kernel_shape", LACI_ATTR_INTS},
                                  {"pads", LACI_ATTR_INTS}, {"strides", LACI_ATTR_INTS}),
    .quantized = &laci_q_linear_conv_form,
    .infer = laci_integer_product_infer,
    .eval = laci_integer_product_eval,
    .couple = laci_quantized_couple_product};
