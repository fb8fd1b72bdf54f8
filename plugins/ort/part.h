/* SPDX-License-Identifier: Apache-2.0
 * Cuts a graph into parts of nodes that may be taken, such that no path from a node of a part to
 * another one of it passes a node outside. A node is only an index here: nothing depends on ONNX
 * Runtime. */
#ifndef LAC_ORT_PART_H
#define LAC_ORT_PART_H

#include <stdbool.h>

/** A graph: nodes in an order in which those that a node reads come first. */
typedef struct laci_ort_edges {
  int n_nodes;
  const int *begin; /* [n_nodes + 1] node k reads the nodes from[begin[k]] .. from[begin[k + 1] -
                       1] */
  const int *from;  /* [begin[n_nodes]] indices of the nodes that are read: first those that node 0
                       reads, then those of node 1, and so on */
} laci_ort_edges;

/** Sets part[k] to the number of the part that node k belongs to, and -1 where may[k] is false.
 * Parts are numbered 0 .. *n_parts - 1 in the order of their first nodes, and are as large as
 * possible: merging two connected parts would make a cycle. Returns false where there is not
 * enough memory. */
bool laci_ort_cut_graph(const laci_ort_edges *edges, const bool *may, int *part, int *n_parts);

#endif
