/* SPDX-License-Identifier: Apache-2.0
 * Some nodes of a graph as a graph of its own: what an engine runs by itself of a network. */
#ifndef LACI_GRAPH_PART_H
#define LACI_GRAPH_PART_H

#include <stdbool.h>

#include "lacuna/status.h"

typedef struct laci_arena laci_arena;
typedef struct laci_graph laci_graph;
typedef struct laci_type laci_type;

/** Where a part begins and where it ends: values of the graph. */
typedef struct laci_part_ends {
  const int *inputs;      /* [n_inputs] */
  const laci_type *types; /* [n_inputs] in the part */
  int n_inputs;
  const int *outputs; /* [n_outputs] */
  int n_outputs;
} laci_part_ends;

/** *part: the graph of the chosen nodes, chosen[n_nodes], none of which belongs to a body. What
 * they read and none of them computes is an input or a stored tensor. Values and stored tensors
 * have the same numbers as in `graph`, whose texts and bytes the part shares; it must live as long.
 * The part is allocated in the arena. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_graph_part(laci_arena *arena, const laci_graph *graph,
                                          const bool *chosen, const laci_part_ends *ends,
                                          laci_graph **part, lac_error *err);

#endif
