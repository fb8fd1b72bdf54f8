/* SPDX-License-Identifier: Apache-2.0
 * Scan: a loop over slices of its sequences, whose outputs are carried values and stacked slices.
 * The nodes of the body are between ScanBegin and this node, which ends an iteration (graph.h,
 * laci_body). */
#include "graph/ops/shared/loop_in.h"

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  return laci_loop_end_couple_orders(node, c);
}

const laci_op laci_op_scan = {
    .name = "Scan",
    .role = LACI_ROLE_PASS_THROUGH,
    .control = LACI_CONTROL_END,
    .attributes = LACI_ATTRIBUTES(
        {"body", LACI_ATTR_OTHER}, {"directions", LACI_ATTR_INTS},
        {"num_scan_inputs", LACI_ATTR_INT}, {"scan_input_axes", LACI_ATTR_INTS},
        {"scan_input_directions", LACI_ATTR_INTS}, {"scan_output_axes", LACI_ATTR_INTS},
        {"scan_output_directions", LACI_ATTR_INTS}),
    .infer = laci_loop_end_infer,
    .couple = couple_channel_orders};
