/* SPDX-License-Identifier: Apache-2.0
 * Loop: what its body carries from iteration to iteration, and a slice of a result for every
 * iteration. The body's nodes are between LoopBegin and this node, which ends an iteration
 * (graph.h, laci_body). What is carried has one order for all iterations, so what comes in first,
 * what goes into any iteration, what comes out of one and the result are joined. */
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
