/* SPDX-License-Identifier: Apache-2.0
 * Extracts a part of a graph as a separate graph: the nodes that its outputs need, from one value
 * on. */
#ifndef LACI_ENGINE_CPU_MICROBATCH_PART_H
#define LACI_ENGINE_CPU_MICROBATCH_PART_H

#include "graph/graph.h"

/** The input and the outputs of the part of a graph that is extracted. */
typedef struct laci_stage_ports {
  int input;          /* the value that becomes the input of the part */
  laci_type type;     /* the type that the input has in the part */
  const int *outputs; /* [n_outputs] values that the part computes */
  int n_outputs;
  int shaped; /* an input of the graph of which the part reads only the shape; -1: none */
  laci_type shaped_type; /* the type that `shaped` has in the part */
} laci_stage_ports;

/** Extracts a part of a graph: the nodes that compute the outputs from ports->input. The first
 * input of the part is ports->input; ports->shaped follows if the part reads it. *part is NULL if
 * the part needs another input of the graph. Values and stored tensors have the same indices as in
 * `graph`. The part is allocated in the arena and shares texts and bytes with `graph`, which must
 * live as long. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_stage_extract_part(laci_arena *arena, const laci_graph *graph,
                                                  const laci_stage_ports *ports, laci_graph **part,
                                                  lac_error *err);

#endif
