/* SPDX-License-Identifier: Apache-2.0
 * The library's own engine as a target: what it takes as sparse is what its plan runs so, which
 * depends on the layers around and on the sizes of inputs, not on a layer alone. The plan is asked
 * for with the zeros that the weights have, or would have. */
#include <stdio.h>

#include "analyze/analyze.h"
#include "api/prune/target_plan_in.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/engine.h"
#include "graph/graph.h"
#include "graph/view.h"
#include "target/target.h"

bool laci_target_is_planned(const laci_target_choice *choice) {
  return choice->target == &laci_target_lacuna_cpu;
}

static const char *reason_of(laci_arena *arena, const laci_engine_node *node,
                             const laci_engine_answer *answer) {
  char text[400];
  if (answer->refusal.status)
    (void)snprintf(text, sizeof text, "no plan is possible: %.300s", answer->refusal.text);
  else if (node->sparse_possible)
    (void)snprintf(text, sizeof text, "the plan runs it by a dense kernel, expected to be faster");
  else
    (void)snprintf(text, sizeof text, "the plan runs it as dense%s%.300s", node->reason ? ": " : "",
                   node->reason ? node->reason : "");
  return laci_arena_text(arena, text);
}

lac_status laci_target_plan_ask(const laci_target_plan_source *from, laci_arena *arena,
                                const char ***reasons, lac_error *err) {
  const laci_analysis *a = from->analysis;
  const laci_engine_options options = {.threads = from->threads, .bf16 = from->bf16};
  laci_graph *view = NULL;
  laci_engine_answer answer;
  *reasons = laci_arena_alloc(arena, (size_t)a->n_layers + 1, sizeof **reasons);
  laci_engine_node *nodes = laci_alloc((size_t)a->graph->n_nodes + 1, sizeof *nodes);
  lac_status st = *reasons && nodes ? LAC_OK : laci_fail_memory(err, "the plan");
  if (!st) st = laci_graph_view_create(a->graph, from->weights, &view, err);
  if (!st) st = laci_engine_ask(view, &options, arena, nodes, &answer, err);
  for (int l = 0; l < a->n_layers && !st; l++) {
    const laci_engine_node *node = &nodes[a->layers[l].node];
    if (node->sparse && !answer.refusal.status) continue;
    (*reasons)[l] = reason_of(arena, node, &answer);
    if (!(*reasons)[l]) st = laci_fail_memory(err, "the plan");
  }
  laci_graph_view_destroy(view);
  laci_free(nodes);
  return st;
}
