/* SPDX-License-Identifier: Apache-2.0
 * What a drawing of a large network leaves out: blocks that repeat are drawn once, and a node that
 * only changes the one value of another is a line in its box.
 *
 * A block repeats if the nodes after it are the same once more: operators, shapes, looks, and edges
 * of the same length (or from the same node further up). Copies before the last one are read by
 * nobody outside, so that all who read the last one can be drawn as readers of the first. */
#ifndef LACI_REPORT_FOLD_H
#define LACI_REPORT_FOLD_H

#include <stdbool.h>
#include <stddef.h>

#include "lacuna/status.h"

typedef struct laci_graph laci_graph;
typedef struct laci_plot_node laci_plot_node;

/** A block that repeats, in the order of the nodes that are drawn. */
typedef struct laci_fold_block {
  int first;  /* place of its first node in laci_fold.order */
  int length; /* nodes in a block */
  int copies; /* at least 2 */
} laci_fold_block;

/** Which nodes are drawn; laci_fold_clear frees it. */
typedef struct laci_fold {
  int *box;   /* [n_nodes]: the node in whose box this one is; itself: it has a box */
  bool *copy; /* [n_nodes]: the node is in a copy of a block that is drawn once */
  bool *line; /* [n_nodes]: the node, or what it is a copy of, is a line in the box of another */
  int *order; /* [n_order]: nodes that could have boxes, in the graph's order */
  int n_order;
  laci_fold_block *blocks;
  int n_blocks;
} laci_fold;

/** Finds what is left out. left_out: [n_nodes], nodes that have no box in any case (each is in its
 * own box afterwards). folds: copies are drawn once, and nodes as lines of boxes; else every node
 * has its box. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_fold_find(const laci_graph *graph, const laci_plot_node *nodes,
                                         const bool *left_out, bool folds, laci_fold *fold,
                                         lac_error *err);
void laci_fold_clear(laci_fold *fold);

/** Writes what the names of all nodes in this copy of a block begin with, without a separator at
 * its end; empty: they have nothing in common. */
void laci_fold_copy_name(const laci_graph *graph, const laci_fold *fold,
                         const laci_fold_block *block, int copy, char *text, size_t size);

/** Returns the block whose first copy has the node at this place of the order; NULL: none. */
const laci_fold_block *laci_fold_block_at(const laci_fold *fold, int place);

#endif
