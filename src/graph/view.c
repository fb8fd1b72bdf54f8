/* SPDX-License-Identifier: Apache-2.0
 * A view is a copy of the laci_graph struct with an array of stored tensors of its own. */
#include "graph/view.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/graph.h"

lac_status laci_graph_view_create(const laci_graph *graph, const uint8_t *const *weights,
                                  laci_graph **view, lac_error *err) {
  size_t n = (size_t)graph->n_stored;
  laci_graph *v = laci_alloc(1, sizeof *v);
  *view = NULL;
  if (!v) return laci_fail_memory(err, "a network's weights");
  *v = *graph;
  v->stored = laci_alloc(n + 1, sizeof *v->stored);
  if (!v->stored) {
    laci_free(v);
    return laci_fail_memory(err, "a network's weights");
  }
  for (size_t s = 0; s < n; s++) {
    v->stored[s] = graph->stored[s];
    v->stored[s].owned = NULL;
    v->stored[s].spilled = false;
    if (weights && weights[s]) v->stored[s].bytes = weights[s];
  }
  *view = v;
  return LAC_OK;
}

void laci_graph_view_destroy(laci_graph *view) {
  if (!view) return;
  for (int s = 0; s < view->n_stored; s++) laci_free(view->stored[s].owned);
  laci_free(view->stored);
  laci_free(view);
}
