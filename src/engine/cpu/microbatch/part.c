/* SPDX-License-Identifier: Apache-2.0
 * Parts of graphs: part.h. */
#include "engine/cpu/microbatch/part.h"

#include "base/error.h"
#include "base/memory.h"
#include "graph/part.h"

/** Which values and nodes of the graph a part needs. */
typedef struct needed {
  bool *values; /* [n_values] the part needs the value */
  bool *nodes;  /* [n_nodes] the part needs the node */
} needed;

static bool has_needed_output(const laci_node *node, int input, const bool *values) {
  for (int at = 0; at < node->n_outputs; at++) {
    const int value = node->outputs[at];
    if (value >= 0 && value != input && values[value]) return true;
  }
  return false;
}

/** Marks the needed values and nodes, from the last node to the first. */
static void mark_needed_values(const laci_graph *graph, int input, const needed *to) {
  for (int n = graph->n_nodes - 1; n >= 0; n--) {
    const laci_node *node = &graph->nodes[n];
    to->nodes[n] = has_needed_output(node, input, to->values);
    for (int at = 0; at < node->n_inputs && to->nodes[n]; at++) {
      if (node->inputs[at] >= 0) to->values[node->inputs[at]] = true;
    }
  }
}

static bool reads_inputs_outside_cut(const laci_graph *graph, const laci_stage_ports *ports,
                                     const needed *to) {
  for (int at = 0; at < graph->n_inputs; at++) {
    const int value = graph->inputs[at];
    if (value != ports->input && value != ports->shaped && to->values[value]) return true;
  }
  return false;
}

lac_status laci_stage_extract_part(laci_arena *arena, const laci_graph *graph,
                                   const laci_stage_ports *ports, laci_graph **part,
                                   lac_error *err) {
  const needed to = {.values = laci_alloc((size_t)graph->n_values, sizeof *to.values),
                     .nodes = laci_alloc((size_t)graph->n_nodes, sizeof *to.nodes)};
  lac_status st = to.values && to.nodes ? LAC_OK : laci_fail_memory(err, "a part of the network");
  *part = NULL;
  for (int at = 0; at < ports->n_outputs && !st; at++) to.values[ports->outputs[at]] = true;
  if (!st) mark_needed_values(graph, ports->input, &to);
  if (!st && !reads_inputs_outside_cut(graph, ports, &to)) {
    const bool asks_shaped = ports->shaped >= 0 && to.values[ports->shaped];
    const laci_part_ports both = {.inputs = (const int[]){ports->input, ports->shaped},
                                  .types = (const laci_type[]){ports->type, ports->shaped_type},
                                  .n_inputs = asks_shaped ? 2 : 1,
                                  .outputs = ports->outputs,
                                  .n_outputs = ports->n_outputs};
    st = laci_graph_build_subgraph(arena, graph, to.nodes, &both, part, err);
  }
  laci_free(to.values);
  laci_free(to.nodes);
  return st;
}
