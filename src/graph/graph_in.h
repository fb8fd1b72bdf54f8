/* SPDX-License-Identifier: Apache-2.0
 * What the files that build a graph share: graph.c (values) and nodes.c. */
#ifndef LACI_GRAPH_GRAPH_IN_H
#define LACI_GRAPH_GRAPH_IN_H

#include "base/memory.h"
#include "graph/graph.h"
#include "graph/names.h"

struct laci_graph_own {
  laci_name_table values, nodes; /* the index of each value, and of each node, by its name */
  laci_arena arena;
  int body; /* number of the body to which the next added nodes belong; 0: none */
};

/** Fails LAC_BAD_FILE where a value has a definition already. */
LAC_MUST_CHECK lac_status laci_graph_check_value_undefined(const laci_graph *graph, int value,
                                                           lac_error *err);

#endif
