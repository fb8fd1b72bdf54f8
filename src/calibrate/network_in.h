/* SPDX-License-Identifier: Apache-2.0
 * The network at a fixed batch size, and parts of it as graphs of their own: private to
 * calibrate.
 *
 * Values that do not depend on the network's inputs are constant. Those that shape inference knows
 * are stored in a part; the others are computed anew in every part that reads them. So only values
 * that depend on samples pass from part to part. */
#ifndef LACI_CALIBRATE_NETWORK_IN_H
#define LACI_CALIBRATE_NETWORK_IN_H

#include "base/memory.h"
#include "calibrate/samples.h"
#include "graph/graph.h"

/** A network whose shapes are inferred for samples of one shape set (samples.h) and one number of
 * samples in a batch. */
typedef struct laci_network {
  laci_graph graph;        /* a copy of the graph's struct that owns the arrays `values` and
                              `stored`; other arrays belong to the original */
  const uint8_t **weights; /* [n_stored] the bytes of each stored tensor: from laci_weighted_graph,
                              or else from the graph */
  bool *constant;          /* [n_values] the value does not depend on the network's inputs */
  const char **refusal;    /* [n_values] why the value cannot be computed; NULL: it can */
  bool is_reduced;         /* inputs were replaced by stored tensors, so that only parts of the
                              graph can be run */
  const int *alias;        /* [n_values] the value that replaces each value: for a result of an
                              inlined If, the branch's result; NULL: no value is replaced */
  int *states; /* [n_nodes] 1 + the value of the states that a recurrent node's steps begin with; 0:
                  none was added (recurrent_in.h); NULL: no node has any */
  int64_t batch;
  laci_arena arena; /* memory of texts and of the arrays of parts */
} laci_network;

/** Infers the graph for batches of `batch` samples of a shape set. Inputs that all samples share
 * become stored tensors, and an If whose condition follows from these becomes the nodes of its
 * branch. The graph is borrowed and stays unchanged. Fails as laci_graph_infer does, LAC_BAD_SHAPE
 * where a size of an input is unknown. */
LAC_MUST_CHECK lac_status laci_network_create(const laci_weighted_graph *from,
                                              const laci_calibration_samples *samples,
                                              int shape_set, int64_t batch, laci_network **network,
                                              lac_error *err);
void laci_network_destroy(laci_network *network); /* NULL is fine */

/** Returns the bytes of a value as an engine's input or output; 0: unknown size, or not a tensor of
 * numbers. */
uint64_t laci_network_value_bytes(const laci_network *network, int value);
/** Returns the bytes of the network's largest value. */
uint64_t laci_network_largest_value_bytes(const laci_network *network);

/** A part of a network: the nodes that compute `outputs` from `inputs`. The arrays are in the
 * network's arena. */
typedef struct laci_part {
  int n_inputs, n_outputs, n_nodes;
  const int *inputs, *outputs; /* indices of the values that the part reads and outputs */
  const int *nodes;            /* indices of the nodes, in the order of the graph */
  int product_only; /* index of a node of which the part computes only the product: its inputs after
                       the second one (a bias) are left out; -1: no such node */
} laci_part;

/** Finds the nodes that compute the values wanted[n_wanted] from available values: those whose
 * there[n_values] is true. part->inputs are the available values that these nodes read, ascending;
 * part->product_only is -1. A wanted value must not be available. */
LAC_MUST_CHECK lac_status laci_part_find_nodes(laci_network *network, const bool *there,
                                               int n_wanted, const int *wanted, laci_part *part,
                                               lac_error *err);

/** Builds the part as a graph, with types inferred and inputs and outputs in the part's order.
 * weights: [n_stored], used in place of the network's; they must outlive the graph. */
LAC_MUST_CHECK lac_status laci_part_build_graph(const laci_network *network, const laci_part *part,
                                                const uint8_t *const *weights, laci_graph **graph,
                                                lac_error *err);

/** Estimates the peak bytes of a run of the part without its inputs and outputs: values that are
 * live at the same time, and the stored tensors that it reads. */
uint64_t laci_part_memory_bytes(const laci_network *network, const laci_part *part);

#endif
