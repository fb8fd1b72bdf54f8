/* SPDX-License-Identifier: Apache-2.0
 * Which nodes of a graph this provider takes. */
#ifndef LAC_ORT_CLAIM_H
#define LAC_ORT_CLAIM_H

#include "graph.h"
#include "options.h"

/** The parts that the provider takes: part[k] is the number of the part that has node k; -1: ONNX
 * Runtime keeps the node. */
typedef struct laci_ort_claim {
  int *part; /* [n_nodes] number of each node's part, in the graph's memory; NULL: there is no part
                */
  int n_parts;
} laci_ort_claim;

/** Finds the parts to take, each of which can be planned. A graph that is a body (of If, Loop,
 * Scan) has no parts: it is taken together with the node that it belongs to. */
LAC_MUST_CHECK lac_status laci_ort_find_claim(laci_ort_graph *graph,
                                              const laci_ort_options *options,
                                              const ort_logger *logger, laci_ort_claim *claim,
                                              lac_error *err);

#endif
