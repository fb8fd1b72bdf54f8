/* SPDX-License-Identifier: Apache-2.0
 * Parts of lac_compare: match.c pairs nodes of two networks, values.c measures how much two values
 * differ. */
#ifndef LACI_API_COMPARE_IN_H
#define LACI_API_COMPARE_IN_H

#include "lacuna/compare.h"

typedef struct laci_buf laci_buf;
typedef struct laci_graph laci_graph;

/** Two nodes that belong together: node `a` of the first graph, and node `b` of the second.
 * by_name: they have the same name. */
typedef struct laci_node_pair {
  int a, b;
  bool by_name;
} laci_node_pair;

/** Finds pairs, in ascending order of both nodes. Nodes of the same name are paired first; then,
 * among the nodes between two such pairs, those of the same operator and shape. *pairs is freed
 * with laci_free. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_compare_pair_nodes(const laci_graph *a, const laci_graph *b,
                                                  laci_node_pair **pairs, int *n_pairs,
                                                  lac_error *err);

/** Compares two values: fills shape, scale, error and largest of *value. Sets reordered if the
 * error is at most half as large with the channels in another order. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_compare_bufs(const laci_buf *a, const laci_buf *b,
                                            lac_compare_value *value, lac_error *err);

#endif
