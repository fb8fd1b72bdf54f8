/* SPDX-License-Identifier: Apache-2.0
 * Builds a graph of some nodes of another graph, so that an engine can run a part of a network. */
#ifndef LACI_GRAPH_PART_H
#define LACI_GRAPH_PART_H

#include <stdbool.h>

#include "lacuna/status.h"

typedef struct laci_arena laci_arena;
typedef struct laci_graph laci_graph;
typedef struct laci_type laci_type;

/** The values of the graph where a part begins and ends. */
typedef struct laci_part_ports {
  const int *inputs;      /* [n_inputs] values that the part reads from outside */
  const laci_type *types; /* [n_inputs] types of the inputs in the part */
  int n_inputs;
  const int *outputs; /* [n_outputs] values that are outputs of the part */
  int n_outputs;
} laci_part_ports;

/** Builds *part, the graph of the nodes with chosen[node]. A value that they read and none of them
 * computes must be an input of the part or a stored tensor. Of a body, all nodes or none are in the
 * part; without the node that ends it, they become nodes of the body around it. Values and stored
 * tensors have the same indices as in `graph`. The part shares texts and bytes with `graph`, which
 * must live as long; it is allocated in the arena. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_graph_build_subgraph(laci_arena *arena, const laci_graph *graph,
                                                    const bool *chosen,
                                                    const laci_part_ports *ports, laci_graph **part,
                                                    lac_error *err);

#endif
