/* SPDX-License-Identifier: Apache-2.0
 * Which nodes of a graph this provider takes. */
#ifndef LAC_ORT_CLAIM_H
#define LAC_ORT_CLAIM_H

#include "graph.h"
#include "options.h"

/** A list of parts: part[k] is the number of node k's part, -1: it stays with ONNX Runtime. */
typedef struct laci_ort_claim {
  int *part; /* [n_nodes], in the graph's memory; NULL: no part */
  int n_parts;
} laci_ort_claim;

/** Finds the parts to take. Every part was asked whether it can be planned, and can. A graph that
 * is a body has none: it goes with the node that has it. */
LAC_MUST_CHECK lac_status laci_ort_claim_find(laci_ort_graph *graph,
                                              const laci_ort_options *options,
                                              const ort_logger *logger, laci_ort_claim *claim,
                                              lac_error *err);

#endif
