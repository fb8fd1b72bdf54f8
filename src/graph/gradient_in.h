/* SPDX-License-Identifier: Apache-2.0
 * The state of a walk backwards; gradient.c walks, gradient_nodes.c builds. */
#ifndef LACI_GRAPH_GRADIENT_IN_H
#define LACI_GRAPH_GRADIENT_IN_H

#include "graph/gradient.h"

struct laci_gradient_builder {
  laci_graph *graph;
  int n_nodes;         /* those that were there before */
  bool *depends;       /* [values that were there before] computed from a parameter */
  int *gradient;       /* [the same] d loss / d value so far; -1: nothing */
  const char *current; /* node whose rule runs: what it adds is named after it */
  int n_made;          /* nodes added for it */
  lac_status status;   /* the first failure */
  lac_error *err;
};

#endif
