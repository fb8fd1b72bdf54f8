/* SPDX-License-Identifier: Apache-2.0
 * Predicts a run of the library's own engine. How a layer is run depends on the layers around it
 * and on the sizes of the inputs. So the engine plans the whole network, with the zeros that the
 * weights have or would have. */
#include "api/prune/predict_in.h"

#include <stdio.h>

#include "analyze/analyze.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/engine.h"
#include "graph/graph.h"
#include "graph/view.h"

static const char *reason_not_sparse(laci_arena *arena, const laci_engine_node *node,
                                     const laci_engine_answer *answer) {
  char text[400];
  if (answer->refusal.status)
    (void)snprintf(text, sizeof text, "no plan is possible: %.300s", answer->refusal.text);
  else if (node->sparse_possible)
    (void)snprintf(text, sizeof text, "a dense kernel is expected to be faster");
  else
    (void)snprintf(text, sizeof text, "dense in the plan%s%.300s", node->reason ? ": " : "",
                   node->reason ? node->reason : "");
  return laci_arena_text(arena, text);
}

static lac_status fill_layers(const laci_analysis *a, const laci_engine_node *nodes,
                              const laci_engine_answer *answer, laci_arena *arena,
                              laci_prediction *p, lac_error *err) {
  for (int l = 0; l < a->n_layers; l++) {
    const laci_engine_node *node = &nodes[a->layers[l].node];
    laci_predicted_layer *layer = &p->layers[l];
    *layer = (laci_predicted_layer){.sparse = node->sparse && !answer->refusal.status,
                                    .seconds = node->predicted_seconds,
                                    .flops = node->flops};
    if (layer->sparse) continue;
    layer->reason = reason_not_sparse(arena, node, answer);
    if (!layer->reason) return laci_fail_memory(err, "the plan");
  }
  return LAC_OK;
}

lac_status laci_predict_times(const laci_predict_source *from, laci_arena *arena,
                              laci_prediction *p, lac_error *err) {
  const laci_analysis *a = from->analysis;
  /* bodies have plans in the automatic engine alone */
  const laci_engine_options options = {
      .engine = a->graph->n_bodies > 0 ? LACI_ENGINE_AUTO : LACI_ENGINE_FAST,
      .threads = from->threads,
      .bf16 = from->bf16};
  laci_graph *view = NULL;
  laci_engine_answer answer;
  *p = (laci_prediction){
      .n_layers = a->n_layers,
      .layers = laci_arena_alloc(arena, (size_t)a->n_layers + 1, sizeof *p->layers)};
  laci_engine_node *nodes = laci_alloc((size_t)a->graph->n_nodes + 1, sizeof *nodes);
  lac_status st = p->layers && nodes ? LAC_OK : laci_fail_memory(err, "the plan");
  if (!st) st = laci_graph_view_create(a->graph, from->weights, &view, err);
  if (!st) st = laci_engine_ask(view, &options, arena, nodes, &answer, err);
  if (!st) st = fill_layers(a, nodes, &answer, arena, p, err);
  if (!st && answer.refusal.status) {
    p->refusal = laci_arena_text(arena, answer.refusal.text);
    if (!p->refusal) st = laci_fail_memory(err, "the plan");
  }
  if (!st) {
    p->assumed = answer.open;
    p->seconds = answer.predicted_seconds;
    for (int n = 0; n < a->graph->n_nodes; n++) p->flops += nodes[n].flops;
  }
  laci_graph_view_destroy(view);
  laci_free(nodes);
  return st;
}
