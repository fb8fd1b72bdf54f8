/* SPDX-License-Identifier: Apache-2.0
 * A part of a graph as a graph of its own: what its outputs need, from one input on. */
#ifndef LACI_ENGINE_CPU_MICROBATCH_PART_H
#define LACI_ENGINE_CPU_MICROBATCH_PART_H

#include "graph/graph.h"

/** Where a part begins and where it ends. */
typedef struct laci_stage_ends {
  int input;
  laci_type type;     /* of the input in the part */
  const int *outputs; /* [n_outputs] values */
  int n_outputs;
  int shaped; /* an input of the graph whose shape alone the part may ask for; -1: none */
  laci_type shaped_type; /* in the part */
} laci_stage_ends;

/** *part: the graph of the nodes that the outputs need where the input is there: its first input,
 * followed by `shaped` where it asks for that. NULL: they need another input of the graph, too.
 * Values and stored tensors have the same numbers as in `graph`, whose texts and bytes it shares;
 * it must live as long. The part is in the arena. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_stage_part(laci_arena *arena, const laci_graph *graph,
                                          const laci_stage_ends *ends, laci_graph **part,
                                          lac_error *err);

#endif
