/* SPDX-License-Identifier: Apache-2.0
 * Shapes of values that loops carry from one iteration to the next, for infer.c.
 *
 * The first guess is that a carried value keeps the shape it has before the loop. Where the body
 * returns another size, that size becomes unknown (a new symbol), and the body is inferred again.
 * Where the guess holds, it holds for every iteration. */
#ifndef LACI_GRAPH_LOOPS_IN_H
#define LACI_GRAPH_LOOPS_IN_H

#include "graph/graph.h"

typedef struct laci_loops {
  laci_type *declared; /* [n_values] types of values before inference */
  uint32_t *wide;      /* [n_values] a bit for each axis whose size changes between iterations */
  uint8_t *rounds;     /* [n_bodies] how often each body was inferred again */
} laci_loops;

LAC_MUST_CHECK lac_status laci_loops_init(laci_loops *loops, const laci_graph *graph);
void laci_loops_clear(laci_loops *loops);
/** Makes the sizes of a carried value, at the start of an iteration, unknown where they change
 * between iterations. */
void laci_loops_make_changing_sizes_unknown(const laci_loops *loops, laci_graph *graph, int value);
/** Returns the node to infer after node n: the next one, or, where n ends a body that must be
 * inferred again, the first node of that body. */
int laci_loops_find_next_node(laci_loops *loops, laci_graph *graph, int n);

#endif
