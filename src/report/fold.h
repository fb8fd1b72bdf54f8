/* SPDX-License-Identifier: Apache-2.0
 * Finds what the drawing of a large network can leave out. Blocks that repeat are drawn once. A
 * node that only changes the one value of another node is drawn as a line in that node's box.
 *
 * A block repeats if the nodes after it are the same once more: they have the same operators,
 * shapes and colors, and their edges have the same lengths (or come from the same node before the
 * block). Only nodes inside the copies may read from copies before the last one. So all readers of
 * the last copy can be drawn as readers of the first. */
#ifndef LACI_REPORT_FOLD_H
#define LACI_REPORT_FOLD_H

#include <stdbool.h>
#include <stddef.h>

#include "lacuna/status.h"

typedef struct laci_graph laci_graph;
typedef struct laci_plot_node laci_plot_node;

/** A block of nodes that repeats. Nodes are in the order in which they are drawn. */
typedef struct laci_fold_block {
  int first;  /* index in laci_fold.order of the first node of the block */
  int length; /* number of nodes in one copy of the block */
  int copies; /* number of copies, at least 2 */
} laci_fold_block;

/** What the drawing leaves out, and which nodes it draws. laci_fold_clear frees it. */
typedef struct laci_fold {
  int *box;   /* [n_nodes] the node in whose box each node is drawn; the node itself if it has a box
                 of its own */
  bool *copy; /* [n_nodes] true: the node is not drawn, since it is in a later copy of a block */
  bool *line; /* [n_nodes] true: the node, or the node that it is a copy of, is a line in another
                 node's box */
  int *order; /* [n_order] nodes that could have boxes, in the graph's order */
  int n_order;
  laci_fold_block *blocks;
  int n_blocks;
} laci_fold;

/** Finds what the drawing leaves out. left_out: [n_nodes] nodes that are drawn in no box; each
 * counts as in its own box afterwards. folds: copies are drawn once, and attached nodes are lines
 * of boxes; else every node has its own box. Fails with LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_fold_init(const laci_graph *graph, const laci_plot_node *nodes,
                                         const bool *left_out, bool folds, laci_fold *fold,
                                         lac_error *err);
void laci_fold_clear(laci_fold *fold);

/** Writes the beginning that the names of all nodes in this copy of a block have in common, without
 * a separator at its end. Writes an empty text if they have nothing in common. */
void laci_fold_write_copy_name(const laci_graph *graph, const laci_fold *fold,
                               const laci_fold_block *block, int copy, char *text, size_t size);

/** Returns the block whose first copy contains the node fold->order[place]; NULL: there is none. */
const laci_fold_block *laci_fold_block_at(const laci_fold *fold, int place);

#endif
