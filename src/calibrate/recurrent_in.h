/* SPDX-License-Identifier: Apache-2.0
 * Layers of LSTM, GRU and RNN as matrix products, in every step and direction:
 *
 *   W [D, G * H, I] reads x_t      all directions read the same input: one matrix of D * G * H rows
 *   R [D, G * H, H] reads h_t-1    a matrix for each direction, which are groups
 *
 * The states h_t-1 are no value of the graph. So each such node gets a copy of itself, which runs
 * before its R is pruned, and a node that puts the copy's states in the order of the steps
 * (lacuna.RecurrentStates). A GRU's candidate without linear_before_reset reads r * h_t-1; its rows
 * are fitted to h_t-1. Private to calibrate. */
#ifndef LACI_CALIBRATE_RECURRENT_IN_H
#define LACI_CALIBRATE_RECURRENT_IN_H

#include "calibrate/layer_in.h"

/** Is it an LSTM, GRU or RNN? */
bool laci_node_is_recurrent(const laci_node *node);

/** Adds to the network, after all others, the nodes that compute the states of the recurrent nodes
 * nodes[n], ascending. Nodes of bodies are left out. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_network_add_states(laci_network *network, const int *nodes, int n,
                                                  lac_error *err);
/** Returns the value of the states that the node's steps begin with, [T, B, D, H]; -1: none was
 * added. */
int laci_network_states_of(const laci_network *network, int node);

/** Describes a layer of a recurrent node: layer->port is W or R. Returns NULL, or why it cannot be
 * calibrated. */
const char *laci_recurrent_layer_init(const laci_network *network, laci_matrix_layer *layer);

/** Builds the graph of the layer's product alone: from its input in a batch of `images` positions
 * to y [images, groups * rows]. weight: bytes of the stored tensor; they must outlive the graph. */
LAC_MUST_CHECK lac_status laci_recurrent_build_product(const laci_network *network,
                                                       const laci_matrix_layer *layer,
                                                       int64_t images, const uint8_t *weight,
                                                       laci_graph **graph, lac_error *err);

#endif
