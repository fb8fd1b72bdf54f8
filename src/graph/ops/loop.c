/* SPDX-License-Identifier: Apache-2.0
 * Loop: repeats its body. Outputs are the carried values after the last iteration, then values with
 * one slice for every iteration. The nodes of the body are between LoopBegin and this node, which
 * ends an iteration (graph.h, laci_body). A carried value has one channel order in all iterations,
 * so its first value, its values at the start and end of an iteration, and the output are
 * coupled. */
#include "graph/ops/shared/loop_in.h"

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  return laci_loop_end_couple_orders(node, c);
}

const laci_op laci_op_loop = {.name = "Loop",
                              .role = LACI_ROLE_PASS_THROUGH,
                              .control = LACI_CONTROL_END,
                              .attributes = LACI_ATTRIBUTES({"body", LACI_ATTR_OTHER}),
                              .infer = laci_loop_end_infer,
                              .couple = couple_channel_orders};
