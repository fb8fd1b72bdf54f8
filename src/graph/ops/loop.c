/* SPDX-License-Identifier: Apache-2.0
 * Loop: what its body carries from turn to turn, and a slice of a result for every turn. The body's
 * nodes stand between LoopBegin and this node, which ends a turn (graph.h, laci_body). What is
 * carried has one order for all turns, so what comes in first, what goes into any turn, what comes
 * out of one and the result are joined. */
#include "graph/ops/shared/loop_in.h"

static lac_status couple(const laci_graph *graph, const laci_node *node, laci_coupling *c) {
  (void)graph;
  return laci_loop_end_couple(node, c);
}

const laci_op laci_op_loop = {.name = "Loop",
                              .role = LACI_ROLE_CLEAR,
                              .control = LACI_CONTROL_END,
                              .attributes = LACI_ATTRIBUTES({"body", LACI_ATTR_OTHER}),
                              .infer = laci_loop_end_infer,
                              .couple = couple};
