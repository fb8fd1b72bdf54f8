/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.QLinearGlobalAveragePool: GlobalAveragePool of quantized numbers, quantized again
 * (shared/integer_in.h). Channels are axis 1, or the last axis where
 * channels_last says so; these stay in place. */
#include "graph/coupling.h"
#include "graph/ops.h"
#include "graph/ops/shared/channels_last_in.h"
#include "graph/ops/shared/integer_in.h"
#include "graph/ops/shared/microsoft_in.h"

static const laci_quantized_form form = {.like = &laci_op_global_average_pool,
                                         .n_operands = 1,
                                         .operands = {{0, 1, 2, 0}},
                                         .quantizes = true,
                                         .y_scale = 3,
                                         .y_zero = 4};

static lac_status infer(laci_infer *infer) {
  return laci_has_channels_last(infer->node) ? laci_channels_last_infer(infer, laci_quantized_infer)
                                             : laci_quantized_infer(infer);
}

static lac_status eval(laci_eval *eval) {
  return laci_has_channels_last(eval->node) ? laci_channels_last_eval(eval, laci_quantized_eval)
                                            : laci_quantized_eval(eval);
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  c->why = "channels are the last axis";
  return laci_has_channels_last(node) ? laci_coupling_status(c)
                                      : laci_quantized_couple_orders(graph, node, c);
}

const laci_op laci_op_ms_q_linear_global_average_pool = {
    .name = "QLinearGlobalAveragePool",
    .domain = LACI_MICROSOFT,
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"channels_last", LACI_ATTR_INT}),
    .quantized = &form,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};
