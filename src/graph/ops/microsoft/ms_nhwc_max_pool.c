/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.NhwcMaxPool: MaxPool (ops/max_pool.c) of quantized numbers whose channels are the
 * last axis. Channels stay in place. */
#include "graph/coupling.h"
#include "graph/ops.h"
#include "graph/ops/shared/channels_last_in.h"
#include "graph/ops/shared/microsoft_in.h"

static lac_status infer(laci_infer *infer) {
  return laci_channels_last_infer(infer, laci_op_max_pool.infer);
}

static lac_status eval(laci_eval *eval) {
  return laci_channels_last_eval(eval, laci_op_max_pool.eval);
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph, (void)node;
  c->why = "channels are the last axis";
  return laci_coupling_status(c);
}

const laci_op laci_op_ms_nhwc_max_pool = {
    .name = "NhwcMaxPool",
    .domain = LACI_MICROSOFT,
    .role = LACI_ROLE_PASS_THROUGH,
    .discontinuous = true,
    .attributes = LACI_ATTRIBUTES({"auto_pad", LACI_ATTR_TEXT}, {"ceil_mode", LACI_ATTR_INT},
                                  {"dilations", LACI_ATTR_INTS}, {"kernel_shape", LACI_ATTR_INTS},
                                  {"pads", LACI_ATTR_INTS}, {"strides", LACI_ATTR_INTS}),
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};
