/* SPDX-License-Identifier: Apache-2.0
 * Inlines Ifs whose condition shape inference knows, so that nobody has to look into their bodies:
 *
 *     then's nodes, else's nodes, y = If(true, a, b), z = Relu(y)   ->   then's nodes, z = Relu(a)
 */
#ifndef LACI_GRAPH_BRANCHES_H
#define LACI_GRAPH_BRANCHES_H

#include "lacuna/status.h"

typedef struct laci_arena laci_arena;
typedef struct laci_graph laci_graph;

/** Inlines each If whose condition is known (laci_value.known): readers of its results then read
 * the results of the taken branch, whose nodes become nodes around the If. The If and the nodes of
 * the other branch lose their inputs and outputs. Indices of nodes, values and bodies stay. The
 * graph gets new arrays `nodes` and `outputs` and new lists of readers, in the arena; its array of
 * values is changed in place. *alias: [n_values] the value that replaces each value, in the arena;
 * NULL: no If was inlined, and nothing is changed. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_graph_inline_branches(laci_graph *graph, laci_arena *arena,
                                                     const int **alias, lac_error *err);

#endif
