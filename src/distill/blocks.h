/* SPDX-License-Identifier: Apache-2.0
 * Which values of a network end a block: where two networks of one shape can be compared, in
 * addition to their outputs. */
#ifndef LACI_DISTILL_BLOCKS_H
#define LACI_DISTILL_BLOCKS_H

#include "lacuna/status.h"

typedef struct laci_graph laci_graph;

/** The sums of residual blocks (two values of one shape, both computed from the inputs), or what an
 * activation makes of such a sum where it alone reads it. Without any: every few layers, what an
 * activation after the layer's norm makes of it. Never the logits (laci_training_logits), nor what
 * they do not depend on. The graph is inferred. *blocks, in the graph's order, is freed with
 * laci_free; *n may be 0. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_blocks_find(const laci_graph *graph, int **blocks, int *n,
                                           lac_error *err);

#endif
