/* SPDX-License-Identifier: Apache-2.0
 * Finds the values of a network that end a block: there, two networks of the same structure can be
 * compared in addition to their outputs. */
#ifndef LACI_DISTILL_BLOCKS_H
#define LACI_DISTILL_BLOCKS_H

#include "lacuna/status.h"

typedef struct laci_graph laci_graph;

/** Finds the values that end the network's blocks. They are the sums of residual blocks (of two
 * values of the same shape, both computed from the inputs); if an activation is the only reader of
 * a sum, its output instead. In a graph without such sums they are, after every few layers, the
 * output of the activation that follows the layer's norm. The logits (laci_training_find_logits),
 * and values that they do not depend on, are never included. The graph must be inferred. *blocks,
 * in the graph's order, is freed with laci_free; *n may be 0. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_block_outputs_find(const laci_graph *graph, int **blocks, int *n,
                                                  lac_error *err);

#endif
