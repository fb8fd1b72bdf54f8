/* SPDX-License-Identifier: Apache-2.0
 * ConvInteger: a convolution of integers minus their zero points (shared/integer_in.h). The weight
 * may have one zero point for each output channel. */
#include "graph/ops/shared/integer_in.h"

static const laci_quantized_form form = {
    .like = &laci_op_conv, .n_operands = 2, .operands = {{0, -1, 2, 0}, {1, -1, 3, 0}}};

static int find_weight_axes(const laci_graph *graph, const laci_node *node,
                            laci_weight_axes axes[2]) {
  (void)graph;
  return laci_quantized_find_weight_axes(node, 0, axes);
}

const laci_op laci_op_conv_integer = {
    .name = "ConvInteger",
    .role = LACI_ROLE_ALLOW,
    .byte_weights = true,
    .weights = find_weight_axes,
    .attributes = LACI_ATTRIBUTES({"auto_pad", LACI_ATTR_TEXT}, {"dilations", LACI_ATTR_INTS},
                                  {"group", LACI_ATTR_INT}, {"kernel_shape", LACI_ATTR_INTS},
                                  {"pads", LACI_ATTR_INTS}, {"strides", LACI_ATTR_INTS}),
    .quantized = &form,
    .infer = laci_integer_product_infer,
    .eval = laci_integer_product_eval,
    .couple = laci_quantized_couple_product};
