/* SPDX-License-Identifier: Apache-2.0
 * The state of the backward walk, which gradient.c does. Rules query it through gradient_rule.c and
 * add nodes through gradient_nodes.c. */
#ifndef LACI_GRAPH_GRADIENT_IN_H
#define LACI_GRAPH_GRADIENT_IN_H

#include "graph/gradient.h"

struct laci_gradient_builder {
  laci_graph *graph;
  /** Adds a node and infers its outputs, whose shapes must be known then. It is a function pointer
   * because adding a node looks up its operator, and the files of operators, where rules are, must
   * not depend on the table that lists them. */
  lac_status (*add_node)(struct laci_gradient_builder *b, const laci_node *node);
  int n_nodes;   /* number of nodes that the graph had before the backward walk */
  bool *depends; /* [n_values before the walk] true: the value is computed from a parameter */
  int *gradient; /* [n_values before the walk] index of the value that holds d loss / d value as far
                    as it is summed up; -1: nothing has contributed to it */
  /* name of the node whose gradient rule runs; nodes that the rule adds get names that begin with
   * it */
  const char *current;
  int n_made;        /* number of nodes added by the current rule */
  lac_status status; /* status of the first failure; LAC_OK: nothing has failed */
  lac_error *err;
};

#endif
