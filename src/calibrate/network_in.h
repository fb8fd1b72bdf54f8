/* SPDX-License-Identifier: Apache-2.0
 * The network at a fixed batch size, and parts of it as graphs of their own: private to
 * calibrate.
 *
 * What does not depend on the network's inputs is constant: sizes that shape inference found are
 * stored in a part as they are, all else that is computed from stored tensors is computed in every
 * part that reads it. So only values of samples cross from part to part. */
#ifndef LACI_CALIBRATE_NETWORK_IN_H
#define LACI_CALIBRATE_NETWORK_IN_H

#include "base/memory.h"
#include "calibrate/samples.h"
#include "graph/graph.h"

typedef struct laci_network {
  laci_graph graph;        /* a copy of the struct with values of its own; all else is borrowed */
  const uint8_t **weights; /* [n_stored] bytes: the caller's, or the graph's */
  bool *constant;          /* [n_values] does not depend on the network's inputs */
  const char **refusal;    /* [n_values] why it cannot be computed; NULL: it can */
  int64_t batch;
  laci_arena arena; /* texts, and the arrays of parts */
} laci_network;

/** The batch size that the network fixes: that of input 0, where axis 0 is known; else 0. */
int64_t laci_network_fixed_batch(const laci_graph *graph);

/** Infers the graph for inputs of these shapes, axis 0 being `batch`. The graph, which is borrowed,
 * stays as it is. Fails as laci_graph_infer does, LAC_BAD_SHAPE where a size of an input is open.
 */
LAC_MUST_CHECK lac_status laci_network_create(const laci_weighted_graph *from,
                                              const laci_shape *shapes, int64_t batch,
                                              laci_network **network, lac_error *err);
void laci_network_destroy(laci_network *network); /* NULL is fine */

/** Bytes of a value as engines hand it over; 0: not known, or no numbers. */
uint64_t laci_network_bytes(const laci_network *network, int value);
/** Of the largest value. */
uint64_t laci_network_largest(const laci_network *network);

/** Nodes that compute `outputs` from `inputs`; arrays in the network's arena. */
typedef struct laci_part {
  int n_inputs, n_outputs, n_nodes;
  const int *inputs, *outputs; /* values */
  const int *nodes;            /* in the order of the graph */
  int without_third; /* a node whose inputs after the second (a bias) are left out; -1: none */
} laci_part;

/** The part that computes wanted[] from what is there, [n_values]; its inputs are the values of
 * those that it reads, ascending; without_third is -1. Nothing wanted may be there already. */
LAC_MUST_CHECK lac_status laci_part_find(laci_network *network, const bool *there, int n_wanted,
                                         const int *wanted, laci_part *part, lac_error *err);

/** The part as a graph, inferred, inputs and outputs in its order. weights: [n_stored], in the
 * place of the network's, for as long as the graph lives. */
LAC_MUST_CHECK lac_status laci_part_graph(const laci_network *network, const laci_part *part,
                                          const uint8_t *const *weights, laci_graph **graph,
                                          lac_error *err);

/** Estimate of the most bytes that a run of the part holds besides its inputs and outputs: values
 * that live at a time, and the stored tensors that it reads. */
uint64_t laci_part_memory(const laci_network *network, const laci_part *part);

#endif
