/* SPDX-License-Identifier: Apache-2.0
 * Views of models, for functions that run a network while another thread may infer its shapes. */
#include <string.h>

#include "api/model/model_in.h"
#include "base/error.h"
#include "base/memory.h"
#include "graph/graph.h"

/** The memory of a view: a copy of the model and its graph, with values and nodes of its own. */
typedef struct model_view {
  lac_model model;  /* must be first: a view is a lac_model. A copy of the caller's model, with
                       `graph` below */
  laci_graph graph; /* a copy of the model's graph, with `values` and `nodes` below */
  laci_value *values;
  laci_node *nodes;
} model_view;

lac_status laci_model_view_create(const lac_model *model, lac_model **view, lac_error *err) {
  const size_t n_values = (size_t)model->graph->n_values, n_nodes = (size_t)model->graph->n_nodes;
  model_view *v = laci_alloc(1, sizeof *v);
  *view = v ? &v->model : NULL;
  if (v) v->values = laci_alloc(n_values, sizeof *v->values);
  if (v) v->nodes = laci_alloc(n_nodes, sizeof *v->nodes);
  if (!v || !v->values || !v->nodes) {
    laci_model_view_destroy(*view);
    *view = NULL;
    return laci_fail_memory(err, "a view of the network");
  }
  pthread_mutex_lock(&model->inferred->lock);
  v->model = *model;
  v->graph = *model->graph;
  if (n_values) memcpy(v->values, model->graph->values, n_values * sizeof *v->values);
  if (n_nodes) memcpy(v->nodes, model->graph->nodes, n_nodes * sizeof *v->nodes);
  pthread_mutex_unlock(&model->inferred->lock);
  v->graph.values = v->values;
  v->graph.nodes = v->nodes;
  v->model.graph = &v->graph;
  return LAC_OK;
}

void laci_model_view_destroy(lac_model *view) {
  model_view *v = (model_view *)view;
  if (!v) return;
  laci_free(v->values);
  laci_free(v->nodes);
  laci_free(v);
}
