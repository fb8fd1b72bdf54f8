/* SPDX-License-Identifier: Apache-2.0
 * Answers whether a graph can be planned, and how each of its nodes is run: laci_engine_ask.
 *
 * The answer is read from an outline of the engine (laci_engine_extent): a plan by the same lists
 * of implementations as a real one, which cannot run. Where sizes of inputs are open, the outline
 * is made for assumed sizes. */
#include "engine/engine.h"

#include <string.h>

#include "base/budget.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/row.h"
#include "graph/graph.h"
#include "graph/infer.h"
#include "graph/op.h"

/** A question (how would this engine run the graph?), and memory for the answer. */
typedef struct question {
  const laci_graph *graph;
  const laci_engine_options *options;
  const char *engine; /* name of the engine */
  laci_arena *memory;
  laci_engine_node *nodes;
} question;

static bool is_refusal(lac_status st) {
  return st == LAC_UNSUPPORTED || st == LAC_BAD_SHAPE || st == LAC_MEMORY_LIMIT;
}

/* ---- An outline ---- */

static lac_status copy_reasons(const question *q, lac_error *err) {
  for (int n = 0; n < q->graph->n_nodes; n++) {
    const char **reason = &q->nodes[n].reason;
    if (!*reason) continue;
    *reason = laci_arena_text(q->memory, *reason);
    if (!*reason) return laci_fail_memory(err, "the answer");
  }
  return LAC_OK;
}

/* Returns the index of the node of that name; -1: there is none. The search begins at *from, and
 * *from is set to the result, since steps come in nearly the order of the nodes. */
static int find_node_by_name(const laci_graph *graph, const char *name, int *from) {
  for (int at = 0; at < graph->n_nodes; at++) {
    const int n = (*from + at) % graph->n_nodes;
    if (strcmp(graph->nodes[n].name, name) != 0) continue;
    *from = n;
    return n;
  }
  return -1;
}

/* Adds the predicted seconds of each step to its node, and returns those of a whole run. */
static double predict_seconds(const question *q, const laci_engine *engine) {
  double seconds = 0;
  int from = 0;
  for (size_t s = 0; s < laci_engine_step_count(engine); s++) {
    const laci_engine_step step = laci_engine_step_info(engine, s);
    const int n = step.name ? find_node_by_name(q->graph, step.name, &from) : -1;
    seconds += step.predicted_seconds;
    if (n < 0) continue;
    q->nodes[n].predicted_seconds += step.predicted_seconds;
    q->nodes[n].flops += step.flops;
  }
  return seconds;
}

/* Makes an outline of the engine (a plan that cannot run), and lists how it runs the nodes. Fails
 * as laci_engine_create. */
static lac_status make_outline(const question *q, laci_engine_options options, double *seconds,
                               lac_error *err) {
  laci_engine *engine = NULL;
  laci_budget budget = laci_budget_with_limit(UINT64_MAX);
  if (options.budget) budget = *options.budget;
  if (options.budget) options.budget = &budget;
  options.tuning = LACI_TUNING_OFF;
  options.timings = NULL;
  lac_status st = laci_engine_create(q->graph, &options, &engine, err);
  if (st) return st;
  for (int n = 0; n < q->graph->n_nodes; n++)
    q->nodes[n] = (laci_engine_node){.runner = LACI_RUNNER_NO_STEP};
  laci_engine_list_nodes(engine, q->graph, q->nodes);
  *seconds = predict_seconds(q, engine);
  st = copy_reasons(q, err);
  laci_engine_destroy(engine);
  return st;
}

/* ---- The nodes of a graph that is refused ---- */

/* Can the engine run the node, whatever the sizes are? The engine AUTO can run bodies of If, Loop
 * and Scan, up to a node that cannot be run. */
static bool is_supported(const question *q, const laci_node *node, lac_error *why) {
  const bool in_body = node->body || laci_node_control_flow_role(node);
  if (in_body && strcmp(q->engine, LACI_ENGINE_AUTO) == 0) return true;
  return laci_engine_can_run_node(q->engine, q->graph, node, why);
}

static lac_status mark_node_refused(const question *q, int node, const char *reason,
                                    lac_error *err) {
  const char *text = laci_arena_text(q->memory, reason);
  if (!text) return laci_fail_memory(err, "the answer");
  q->nodes[node] = (laci_engine_node){.runner = LACI_RUNNER_NONE, .reason = text};
  return LAC_OK;
}

/* Fills the list of nodes from each node's operator alone, since no plan can be made. */
static lac_status list_nodes_by_operator(const question *q, const lac_error *refusal,
                                         lac_error *err) {
  lac_status st = LAC_OK;
  for (int n = 0; n < q->graph->n_nodes && !st; n++) {
    lac_error why = {0};
    q->nodes[n] = (laci_engine_node){.runner = LACI_RUNNER_UNKNOWN, .reason = refusal->text};
    if (!is_supported(q, &q->graph->nodes[n], &why)) st = mark_node_refused(q, n, why.text, err);
  }
  return st ? st : copy_reasons(q, err);
}

/* Lists how each node of a refused graph would be run if no other node prevented it, by a partial
 * outline of the engine AUTO. For the engine FAST, those nodes that AUTO does not run fast are
 * refused. */
static lac_status list_nodes_after_refusal(const question *q, const laci_engine_options *options,
                                           const lac_error *refusal, lac_error *err) {
  const bool fast = strcmp(q->engine, LACI_ENGINE_FAST) == 0;
  laci_engine_options o = *options;
  lac_error why = {0};
  if (!fast && strcmp(q->engine, LACI_ENGINE_AUTO) != 0)
    return list_nodes_by_operator(q, refusal, err);
  o.engine = LACI_ENGINE_AUTO;
  o.extent = LACI_EXTENT_PARTIAL;
  o.budget = NULL;
  double ignored;
  lac_status st = make_outline(q, o, &ignored, &why);
  if (is_refusal(st)) return list_nodes_by_operator(q, refusal, err);
  if (st) return laci_fail(err, st, "%s", why.text);
  for (int n = 0; n < q->graph->n_nodes && !st; n++) {
    lac_error lacks = {0};
    if (q->nodes[n].runner != LACI_RUNNER_EXACT) continue;
    if (!is_supported(q, &q->graph->nodes[n], &lacks))
      st = mark_node_refused(q, n, lacks.text, err);
    else if (fast) q->nodes[n].runner = LACI_RUNNER_NONE;
  }
  return st;
}

/* ---- Open sizes ---- */

/** The shapes of all inputs of a graph. */
typedef struct sizes {
  laci_input_shape *shapes; /* [n_inputs] shape of each input */
  int64_t *bound;           /* [n_symbols + 1] size that each symbol stands for; -1: open */
  bool open;                /* sizes of some inputs are open, and were assumed */
  bool unknown;             /* some input's number of axes is not known */
  bool contradicts;         /* a given shape is not one that the network declares */
} sizes;

static lac_status check_input_names(const question *q, lac_error *err) {
  for (int at = 0; at < q->options->n_shapes; at++) {
    const char *name = q->options->shapes[at].name;
    const int value = laci_graph_find_value(q->graph, name);
    if (value < 0 || !q->graph->values[value].is_input)
      return laci_graph_fail_unknown_input(q->graph, name, err);
  }
  return LAC_OK;
}

static const laci_shape *find_given_shape(const question *q, const char *name) {
  for (int at = 0; at < q->options->n_shapes; at++) {
    if (strcmp(q->options->shapes[at].name, name) == 0) return &q->options->shapes[at].shape;
  }
  return NULL;
}

/* Binds the symbols of an input whose shape was given. */
static void bind_given_symbols(const question *q, sizes *s, int value) {
  const laci_value *v = &q->graph->values[value];
  const laci_shape *declared = &v->type.shape, *given = find_given_shape(q, v->name);
  if (!given || declared->rank < 0) return;
  s->contradicts = s->contradicts || given->rank != declared->rank;
  for (int axis = 0; axis < given->rank && !s->contradicts; axis++) {
    if (given->dims[axis] < 0) continue;
    int64_t fixed = declared->dims[axis];
    int64_t *size = fixed < 0 ? &s->bound[-fixed] : &fixed;
    s->contradicts = *size >= 0 && *size != given->dims[axis];
    *size = given->dims[axis];
  }
}

/* Sets the open sizes of an input to assumed ones: 1 for its first axis, the batch, and `size` for
 * others. */
static void assume_input_shape(const question *q, sizes *s, int at, int64_t size) {
  const laci_value *v = &q->graph->values[q->graph->inputs[at]];
  const laci_shape *given = find_given_shape(q, v->name);
  const bool declared = v->type.shape.rank >= 0;
  laci_shape shape = declared || !given ? v->type.shape : *given;
  for (int axis = 0; axis < shape.rank; axis++) {
    int64_t *symbol = declared && shape.dims[axis] < 0 ? &s->bound[-shape.dims[axis]] : NULL;
    if (given && given->rank == shape.rank && given->dims[axis] >= 0)
      shape.dims[axis] = given->dims[axis];
    if (shape.dims[axis] < 0 && symbol && *symbol >= 0) shape.dims[axis] = *symbol;
    if (shape.dims[axis] >= 0) continue;
    s->open = true;
    shape.dims[axis] = axis == 0 ? 1 : size;
    if (symbol) *symbol = shape.dims[axis];
  }
  s->open = s->open || shape.rank < 0;
  s->unknown = s->unknown || shape.rank < 0;
  s->shapes[at] = (laci_input_shape){.name = v->name, .shape = shape};
}

/* Finds the shapes of all inputs; sizes that are open are assumed to be `size`. */
static void find_input_shapes(const question *q, sizes *s, int64_t size) {
  for (int at = 0; at <= q->graph->n_symbols; at++) s->bound[at] = -1;
  s->open = s->unknown = s->contradicts = false;
  for (int at = 0; at < q->graph->n_inputs; at++) bind_given_symbols(q, s, q->graph->inputs[at]);
  for (int at = 0; at < q->graph->n_inputs; at++) assume_input_shape(q, s, at, size);
}

/* Removes refusals that other sizes could avoid, since the sizes are only assumed. */
static lac_status keep_certain_refusals(const question *q, laci_engine_answer *answer) {
  answer->refusal = (lac_error){0};
  for (int n = 0; n < q->graph->n_nodes; n++) {
    lac_error why = {0};
    if (q->nodes[n].runner != LACI_RUNNER_NONE) continue;
    if (is_supported(q, &q->graph->nodes[n], &why)) q->nodes[n].runner = LACI_RUNNER_UNKNOWN;
    else if (!answer->refusal.status)
      (void)laci_fail(&answer->refusal, LAC_UNSUPPORTED, "%s", why.text);
  }
  return LAC_OK;
}

/* Tries usual sizes for the open ones until a plan can be made. */
static lac_status ask_with_open_shapes(const question *q, sizes *s, laci_engine_answer *answer,
                                       lac_error *err) {
  static const int64_t usual[] = {224, 64, 16, 1};
  laci_engine_options options = *q->options;
  options.shapes = s->shapes;
  options.n_shapes = q->graph->n_inputs;
  for (size_t at = 0; at < sizeof usual / sizeof *usual && !s->unknown; at++) {
    lac_error why = {0};
    find_input_shapes(q, s, usual[at]);
    lac_status st = make_outline(q, options, &answer->predicted_seconds, &why);
    if (!st) answer->refusal = (lac_error){0};
    if (!st) return LAC_OK;
    if (!is_refusal(st)) return laci_fail(err, st, "%s", why.text);
    if (at == 0) (void)laci_fail(&answer->refusal, st, "%s", why.text);
  }
  if (s->unknown)
    (void)laci_fail(&answer->refusal, LAC_BAD_SHAPE, "the shape of an input is not known");
  lac_status st = s->unknown ? list_nodes_by_operator(q, &answer->refusal, err)
                             : list_nodes_after_refusal(q, &options, &answer->refusal, err);
  return st ? st : keep_certain_refusals(q, answer);
}

/* ---- The question ---- */

static lac_status ask_with_fixed_shapes(const question *q, laci_engine_answer *answer,
                                        lac_error *err) {
  lac_error why = {0};
  lac_status st = make_outline(q, *q->options, &answer->predicted_seconds, &why);
  if (!st) return LAC_OK;
  if (!is_refusal(st)) {
    if (err) *err = why;
    return st;
  }
  answer->refusal = why;
  answer->refusal.status = st;
  return list_nodes_after_refusal(q, q->options, &answer->refusal, err);
}

lac_status laci_engine_ask(const laci_graph *graph, const laci_engine_options *options,
                           laci_arena *memory, laci_engine_node *nodes, laci_engine_answer *answer,
                           lac_error *err) {
  laci_engine_options own = *options;
  const question q = {.graph = graph,
                      .options = &own,
                      .engine = options->engine ? options->engine : LACI_ENGINE_FAST,
                      .memory = memory,
                      .nodes = nodes};
  sizes s = {.shapes = laci_alloc((size_t)graph->n_inputs, sizeof *s.shapes),
             .bound = laci_alloc((size_t)graph->n_symbols + 1, sizeof *s.bound)};
  own.extent = LACI_EXTENT_OUTLINE;
  *answer = (laci_engine_answer){0};
  lac_status st = s.shapes && s.bound ? LAC_OK : laci_fail_memory(err, "the question");
  if (!st) {
    find_input_shapes(&q, &s, 1);
    answer->open = s.open && !s.contradicts;
    st = check_input_names(&q, err);
    if (!st)
      st = answer->open ? ask_with_open_shapes(&q, &s, answer, err)
                        : ask_with_fixed_shapes(&q, answer, err);
  }
  laci_free(s.shapes);
  laci_free(s.bound);
  return st;
}
