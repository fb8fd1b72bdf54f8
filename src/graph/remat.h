/* SPDX-License-Identifier: Apache-2.0
 * Less memory for a training step: values that only the backward part still needs are dropped after
 * the forward part and computed once more, just before they are read.
 *
 * The forward part is cut where little crosses. What crosses a cut is kept, and so is what is
 * small; between two cuts everything else is forgotten, and the gradients of that segment read
 * clones of its nodes. A clone is the same operator on the same values, so that gradients keep
 * every bit; a batch norm's clone takes the statistics that the first one found, and leaves the
 * running ones alone. Next: remat_plan.c (where to cut), remat.c (the clones). */
#ifndef LACI_GRAPH_REMAT_H
#define LACI_GRAPH_REMAT_H

#include "graph/graph.h"

/** Rewrites a finished and inferred training graph, whose first n_forward nodes are the forward
 * part and all others its gradients. Clones stand where a gradient first needs them; their values
 * have names of their own and say in laci_value.repeats what they are. *n_again is how many there
 * are: 0, and nothing changed, where it would save nothing. The graph stays finished; ids of values
 * stay. Fails LAC_NO_MEMORY; the graph is then to be destroyed. */
LAC_MUST_CHECK lac_status laci_remat_apply(laci_graph *graph, int n_forward, int *n_again,
                                           lac_error *err);

#endif
