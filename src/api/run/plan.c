/* SPDX-License-Identifier: Apache-2.0
 * The functions of lacuna/plan.h, over laci_engine_ask. */
#include "api/model/model_in.h"
#include "lacuna/plan.h"

#include <stdlib.h>
#include <string.h>

#include "api/model/structs.h"
#include "api/run/infer.h"
#include "api/run/request.h"
#include "api/run/tuning.h"
#include "base/budget.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/engine.h"
#include "graph/op.h"

/** The name of a node's output, and the index of the node. */
typedef struct named {
  const char *output;
  int node;
} named;

struct lac_plan_answer {
  laci_arena memory; /* memory of all texts */
  lac_plan_facts facts;
  lac_plan_node *nodes; /* [facts.n_nodes] what would run each node */
  named *outputs;       /* [n_outputs] outputs of nodes, sorted by name */
  int n_outputs;
};

static const lac_node_runner runners[] = {
    [LACI_RUNNER_NONE] = LAC_RUNNER_NONE,       [LACI_RUNNER_UNKNOWN] = LAC_RUNNER_UNKNOWN,
    [LACI_RUNNER_NO_STEP] = LAC_RUNNER_NO_STEP, [LACI_RUNNER_FAST] = LAC_RUNNER_FAST,
    [LACI_RUNNER_PLAIN] = LAC_RUNNER_OPERATOR,  [LACI_RUNNER_EXACT] = LAC_RUNNER_EXACT};

/* ---- Making an answer ---- */

/* Is the node also in the file? Nodes that mark the beginning of a loop's or branch's body are not.
 */
static bool is_node_in_file(const laci_node *node) {
  return laci_node_control_flow_role(node) != LACI_CONTROL_BEGIN;
}

static void count_node_by_runner(lac_plan_facts *facts, const lac_plan_node *node) {
  int *const counts[] = {
      [LAC_RUNNER_NONE] = &facts->n_none,         [LAC_RUNNER_UNKNOWN] = &facts->n_unknown,
      [LAC_RUNNER_NO_STEP] = &facts->n_no_step,   [LAC_RUNNER_FAST] = &facts->n_fast,
      [LAC_RUNNER_OPERATOR] = &facts->n_operator, [LAC_RUNNER_EXACT] = &facts->n_exact};
  facts->n_nodes++;
  ++*counts[node->runner];
  facts->n_sparse += node->sparse;
  facts->n_sparse_possible += node->sparse_possible;
}

/* Copies a text of the model. Returns NULL for NULL. Without memory returns NULL, too, and sets
 * *whole to false. */
static const char *copy_text_to_answer(lac_plan_answer *a, const char *text, bool *whole) {
  const char *kept = text ? laci_arena_text(&a->memory, text) : NULL;
  *whole = *whole && !text == !kept;
  return kept;
}

static lac_status add_node(lac_plan_answer *a, const laci_graph *graph, int at,
                           const laci_engine_node *found, lac_error *err) {
  const laci_node *from = &graph->nodes[at];
  lac_plan_node *to = &a->nodes[a->facts.n_nodes];
  bool whole = true;
  *to = (lac_plan_node){.size = sizeof *to,
                        .name = copy_text_to_answer(a, from->name, &whole),
                        .op = copy_text_to_answer(a, from->type, &whole),
                        .runner = runners[found->runner],
                        .sparse = found->sparse,
                        .sparse_possible = found->sparse_possible,
                        .reason = found->reason}; /* it is in the answer's memory */
  for (int port = 0; port < from->n_outputs && whole; port++) {
    if (from->outputs[port] < 0) continue;
    const char *name = copy_text_to_answer(a, graph->values[from->outputs[port]].name, &whole);
    if (!to->output) to->output = name;
    a->outputs[a->n_outputs++] = (named){.output = name, .node = a->facts.n_nodes};
  }
  count_node_by_runner(&a->facts, to);
  return whole ? LAC_OK : laci_fail_memory(err, "the answer");
}

static int compare_names(const void *a, const void *b) {
  return strcmp(((const named *)a)->output, ((const named *)b)->output);
}

static lac_status add_nodes(lac_plan_answer *a, const laci_graph *graph,
                            const laci_engine_node *nodes, lac_error *err) {
  size_t n_outputs = 0;
  for (int n = 0; n < graph->n_nodes; n++) n_outputs += (size_t)graph->nodes[n].n_outputs;
  a->nodes = laci_arena_alloc(&a->memory, (size_t)graph->n_nodes, sizeof *a->nodes);
  a->outputs = laci_arena_alloc(&a->memory, n_outputs, sizeof *a->outputs);
  lac_status st = a->nodes && a->outputs ? LAC_OK : laci_fail_memory(err, "the answer");
  for (int n = 0; n < graph->n_nodes && !st; n++) {
    if (is_node_in_file(&graph->nodes[n])) st = add_node(a, graph, n, &nodes[n], err);
  }
  if (!st && a->n_outputs)
    qsort(a->outputs, (size_t)a->n_outputs, sizeof *a->outputs, compare_names);
  return st;
}

static lac_status ask_engine_for_plan(lac_plan_answer *a, const lac_model *model,
                                      const lac_engine_options *options, lac_error *err) {
  laci_request request;
  laci_engine_answer found;
  laci_engine_node *nodes = NULL;
  laci_budget budget = laci_budget_with_limit(options->run.max_memory);
  bool whole = true;
  lac_status st = laci_request_init(&request, model, options, err);
  const laci_graph *graph = st ? NULL : request.view->graph;
  request.options.budget = &budget;
  if (!st) {
    nodes = laci_alloc((size_t)graph->n_nodes, sizeof *nodes);
    if (!nodes) st = laci_fail_memory(err, "the answer");
  }
  if (!st) st = laci_engine_ask(graph, &request.options, &a->memory, nodes, &found, err);
  if (!st) {
    const lac_status refusal =
        laci_engine_add_failure_hint(graph, &request.options, found.refusal.status, &found.refusal);
    a->facts = (lac_plan_facts){
        .size = sizeof a->facts,
        .engine = copy_text_to_answer(a, request.options.engine, &whole),
        .dtype = request.dtype,
        .refusal = refusal,
        .reason = copy_text_to_answer(a, refusal ? found.refusal.text : NULL, &whole),
        .hint = refusal ? found.refusal.hint : LAC_HINT_NONE,
        .open = found.open};
    st = whole ? add_nodes(a, graph, nodes, err) : laci_fail_memory(err, "the answer");
  }
  laci_free(nodes);
  laci_request_clear(&request);
  return st;
}

lac_status lac_plan_ask(const lac_model *model, const lac_engine_options *options,
                        lac_plan_answer **answer, lac_error *err) {
  lac_engine_options own;
  if (answer) *answer = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"answer", answer});
  if (!st) st = laci_take_engine_options(options, &own, err);
  if (!st) st = laci_check_engine_options(&own, err);
  if (st) return st;
  lac_plan_answer *made = laci_alloc(1, sizeof *made);
  if (!made) return laci_fail_memory(err, "the answer");
  lac_context *before = laci_call_enter_context(own.run.context);
  st = ask_engine_for_plan(made, model, &own, err);
  laci_call_leave_context(before);
  if (st) lac_plan_answer_destroy(made);
  else *answer = made;
  return st;
}

void lac_plan_answer_destroy(lac_plan_answer *answer) {
  if (!answer) return;
  laci_arena_clear(&answer->memory);
  laci_free(answer);
}

/* ---- Looking ---- */

lac_status lac_plan_about(const lac_plan_answer *answer, lac_plan_facts *facts, lac_error *err) {
  lac_status st = LACI_CHECK_GIVEN(err, {"answer", answer}, {"facts", facts});
  if (!st) st = laci_check_struct_plan_facts(facts, err);
  if (!st) laci_give_plan_facts(&answer->facts, facts);
  return st;
}

lac_status lac_plan_node_at(const lac_plan_answer *answer, int index, lac_plan_node *node,
                            lac_error *err) {
  lac_status st = LACI_CHECK_GIVEN(err, {"answer", answer}, {"node", node});
  if (!st) st = laci_check_struct_plan_node(node, err);
  if (st) return st;
  if (index < 0 || index >= answer->facts.n_nodes) {
    return laci_fail(err, LAC_NOT_FOUND, "node %d, and there are %d", index, answer->facts.n_nodes);
  }
  laci_give_plan_node(&answer->nodes[index], node);
  return LAC_OK;
}

lac_status lac_plan_find(const lac_plan_answer *answer, const char *output, lac_plan_node *node,
                         lac_error *err) {
  lac_status st = LACI_CHECK_GIVEN(err, {"answer", answer}, {"output", output}, {"node", node});
  if (!st) st = laci_check_struct_plan_node(node, err);
  if (st) return st;
  const named wanted = {.output = output};
  const named *found = !answer->n_outputs
                           ? NULL
                           : bsearch(&wanted, answer->outputs, (size_t)answer->n_outputs,
                                     sizeof *answer->outputs, compare_names);
  if (!found) return laci_fail(err, LAC_NOT_FOUND, "no node has an output '%s'", output);
  laci_give_plan_node(&answer->nodes[found->node], node);
  return LAC_OK;
}

const lac_plan_facts *laci_plan_answer_facts(const lac_plan_answer *answer,
                                             const lac_plan_node **nodes) {
  *nodes = answer->nodes;
  return &answer->facts;
}
