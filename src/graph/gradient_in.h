/* SPDX-License-Identifier: Apache-2.0
 * The state of a walk backwards; gradient.c walks; rules ask by gradient_rule.c and
 * build by gradient_nodes.c. */
#ifndef LACI_GRAPH_GRADIENT_IN_H
#define LACI_GRAPH_GRADIENT_IN_H

#include "graph/gradient.h"

struct laci_gradient_builder {
  laci_graph *graph;
  /** Adds a node and infers its outputs, whose shapes must be known then. A function that the walk
   * brings along, for adding a node looks its operator up: rules are parts of operators, which know
   * nothing of the table that lists them. */
  lac_status (*add_node)(struct laci_gradient_builder *b, const laci_node *node);
  int n_nodes;         /* those that were there before */
  bool *depends;       /* [values that were there before] computed from a parameter */
  int *gradient;       /* [the same] d loss / d value so far; -1: nothing */
  const char *current; /* node whose rule runs: what it adds is named after it */
  int n_made;          /* nodes added for it */
  lac_status status;   /* the first failure */
  lac_error *err;
};

#endif
