/* SPDX-License-Identifier: Apache-2.0
 * Shapes of what loops carry, for infer.c.
 *
 * The first guess is that a carried value keeps the shape it comes with. Where the body makes
 * another of it, that size becomes unknown (a new symbol), and the body is inferred again; where
 * the guess holds, it is true of every iteration. */
#ifndef LACI_GRAPH_LOOPS_IN_H
#define LACI_GRAPH_LOOPS_IN_H

#include "graph/graph.h"

typedef struct laci_loops {
  laci_type *declared; /* [n_values] as they were before inference */
  uint32_t *wide;      /* [n_values] a bit for each axis whose size changes between iterations */
  uint8_t *rounds;     /* [n_bodies] how often a body was inferred again */
} laci_loops;

LAC_MUST_CHECK lac_status laci_loops_init(laci_loops *loops, const laci_graph *graph);
void laci_loops_clear(laci_loops *loops);
/** What is known of the type of a value that a loop's beginning gives. */
void laci_loops_widen(const laci_loops *loops, laci_graph *graph, int value);
/** The node to be inferred after n: the next, or n is the end of a body which is inferred again. */
int laci_loops_next(laci_loops *loops, laci_graph *graph, int n);

#endif
