/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.QLinearConv: QLinearConv (ops/q_linear_conv.c), whose images may have channels as
 * the last axis (attribute channels_last). Such channels stay in place. */
#include "graph/coupling.h"
#include "graph/ops.h"
#include "graph/ops/shared/channels_last_in.h"
#include "graph/ops/shared/integer_in.h"
#include "graph/ops/shared/microsoft_in.h"

static lac_status infer(laci_infer *infer) {
  return laci_has_channels_last(infer->node)
             ? laci_channels_last_infer(infer, laci_integer_product_infer)
             : laci_integer_product_infer(infer);
}

static lac_status eval(laci_eval *eval) {
  return laci_has_channels_last(eval->node)
             ? laci_channels_last_eval(eval, laci_integer_product_eval)
             : laci_integer_product_eval(eval);
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  c->why = "channels are the last axis";
  return laci_has_channels_last(node) ? laci_coupling_status(c)
                                      : laci_quantized_couple_product(graph, node, c);
}

const laci_op laci_op_ms_q_linear_conv = {
    .name = "QLinearConv",
    .domain = LACI_MICROSOFT,
    .role = LACI_ROLE_ALLOW,
    .byte_weights = true,
    .weights = laci_q_linear_conv_find_weight_axes,
    .attributes = LACI_ATTRIBUTES({"auto_pad", LACI_ATTR_TEXT}, {"channels_last", LACI_ATTR_INT},
                                  {"dilations", LACI_ATTR_INTS}, {"group", LACI_ATTR_INT},
                                  {"kernel_shape", LACI_ATTR_INTS}, {"pads", LACI_ATTR_INTS},
                                  {"strides", LACI_ATTR_INTS}),
    .quantized = &laci_q_linear_conv_form,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};
