/* SPDX-License-Identifier: Apache-2.0
 * Cuts a network into phases of fast and of exact nodes (cut.h). */
#include "engine/auto/cut.h"

#include "base/error.h"
#include "base/memory.h"
#include "engine/row.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/sizes.h"

/* ---- Types, and nodes of the fast engine ---- */

static bool is_double(const laci_graph *graph, const laci_type *types, int value) {
  return value >= 0 && graph->values[value].stored < 0 && types[value].dtype == LAC_DTYPE_F64;
}

static bool has_double_value(const laci_graph *graph, const laci_type *types, const int *values,
                             int n) {
  for (int at = 0; at < n; at++) {
    if (is_double(graph, types, values[at])) return true;
  }
  return false;
}

/* Makes a node that computes with doubles exact, since the fast engine has only f32. */
static void assign_double_node_to_exact_engine(laci_auto_cut *cut, int node) {
  const laci_node *n = &cut->graph->nodes[node];
  if (!cut->fast[node] || cut->constant[node]) return;
  if (!has_double_value(cut->graph, cut->types, n->inputs, n->n_inputs) &&
      !has_double_value(cut->graph, cut->types, n->outputs, n->n_outputs)) {
    return;
  }
  cut->fast[node] = false;
  cut->reasons[node] = "elements of type f64";
  if (!cut->reason.text[0])
    (void)laci_fail(&cut->reason, LAC_UNSUPPORTED, "%s (%s): elements of type f64", n->name,
                    n->type);
}

/* Infers the types of all values, and ignores those that the file declares for results: these need
 * not be true, and a plan for them would not fit the real shapes. A network that contradicts itself
 * fails when it runs. */
static lac_status infer_types(const laci_graph *graph, const laci_engine_options *options,
                              laci_type **types, lac_error *err) {
  laci_graph copy = *graph;
  size_t n = (size_t)graph->n_values;
  lac_error why = {0};
  copy.values = laci_alloc(n, sizeof *copy.values);
  if (!copy.values) return laci_fail_memory(err, "the sizes of values");
  for (size_t v = 0; v < n; v++) {
    copy.values[v] = graph->values[v];
    if (copy.values[v].producer >= 0) copy.values[v].type.shape = laci_shape_unknown();
  }
  lac_status st = laci_graph_infer_types(&copy, options->shapes, options->n_shapes, types, &why);
  if (st && !laci_status_is_not_about_data(st)) {
    *types = laci_alloc(n, sizeof **types);
    st = *types ? LAC_OK : LAC_NO_MEMORY;
    for (size_t v = 0; v < n && !st; v++) (*types)[v] = copy.values[v].type;
  }
  laci_free(copy.values);
  return st ? laci_fail(err, st, "%s", why.text[0] ? why.text : "no memory for types") : LAC_OK;
}

lac_status laci_auto_cut_init(laci_auto_cut *cut, const laci_graph *graph,
                              const laci_engine_options *options, bool *doubles, lac_error *err) {
  *cut = (laci_auto_cut){.graph = graph};
  lac_status st = infer_types(graph, options, &cut->types, err);
  *doubles = false;
  for (int v = 0; v < graph->n_values && !st; v++) *doubles |= is_double(graph, cut->types, v);
  return st;
}

lac_status laci_auto_cut_find_fast_nodes(laci_auto_cut *cut, const laci_engine_options *options,
                                         lac_error *err) {
  size_t n = (size_t)cut->graph->n_nodes;
  cut->fast = laci_alloc(n, sizeof *cut->fast);
  cut->constant = laci_alloc(n, sizeof *cut->constant);
  cut->phase = laci_alloc(n, sizeof *cut->phase);
  cut->reasons = laci_arena_alloc(&cut->memory, n, sizeof *cut->reasons);
  laci_engine_reach *nodes = laci_alloc(n, sizeof *nodes);
  bool whole = cut->fast && cut->constant && cut->phase && cut->reasons && nodes;
  lac_status st = whole ? LAC_OK : laci_fail_memory(err, "the phases of a run");
  if (!st) {
    laci_engine_reached reached = {.nodes = nodes,
                                   .types = cut->types,
                                   .why = &cut->reason,
                                   .reasons = cut->reasons,
                                   .memory = &cut->memory};
    st = laci_engine_find_runnable_nodes(LACI_ENGINE_FAST, cut->graph, options, &reached, err);
  }
  for (size_t at = 0; at < n && !st; at++) {
    cut->fast[at] = nodes[at] != LACI_REACH_NOT;
    cut->constant[at] = nodes[at] == LACI_REACH_CONSTANT;
    assign_double_node_to_exact_engine(cut, (int)at);
  }
  laci_free(nodes);
  return st;
}

void laci_auto_cut_clear(laci_auto_cut *cut) {
  laci_free(cut->types);
  laci_free(cut->fast);
  laci_free(cut->constant);
  laci_free(cut->phase);
  laci_arena_clear(&cut->memory);
  *cut = (laci_auto_cut){0};
}

/* ---- Phases ---- */

/* Returns the node that ends the outermost body (of If, Loop or Scan) to which `node` belongs; -1:
 * it belongs to none. */
static int find_outermost_body_end(const laci_graph *graph, const laci_node *node) {
  int body = node->body ? node->body : node->frames;
  if (!body) return -1;
  while (graph->bodies[body - 1].outer) body = graph->bodies[body - 1].outer;
  return graph->bodies[body - 1].end;
}

static int find_lowest_phase(const laci_auto_cut *cut, int node) {
  const laci_node *n = &cut->graph->nodes[node];
  int least = 0;
  for (int at = 0; at < n->n_inputs + n->n_captures; at++) {
    int value = at < n->n_inputs ? n->inputs[at] : n->captures[at - n->n_inputs];
    int producer = value >= 0 ? cut->graph->values[value].producer : -1;
    if (producer >= 0 && cut->phase[producer] > least) least = cut->phase[producer];
  }
  return least + (least % 2 == (cut->fast[node] ? 1 : 0));
}

/* Raises the node's phase to those of the nodes that it reads. All nodes of a body have the phase
 * of the node that ends it. Returns true if a phase was raised. */
static bool raise_phase(laci_auto_cut *cut, int node) {
  int end = find_outermost_body_end(cut->graph, &cut->graph->nodes[node]);
  int phase = find_lowest_phase(cut, node);
  bool raised = false;
  if (end >= 0 && cut->phase[end] > phase) phase = cut->phase[end];
  for (int pass = 0; pass < 2; pass++) {
    int to = pass == 0 ? node : end;
    if (to < 0 || phase <= cut->phase[to]) continue;
    cut->phase[to] = phase;
    raised = true;
  }
  return raised;
}

static void assign_lowest_phases(laci_auto_cut *cut) {
  bool raised = true;
  for (int n = 0; n < cut->graph->n_nodes; n++) cut->phase[n] = cut->fast[n] ? 0 : 1;
  while (raised) {
    raised = false;
    for (int n = 0; n < cut->graph->n_nodes; n++) raised = raise_phase(cut, n) || raised;
  }
  cut->n_phases = 0;
  for (int n = 0; n < cut->graph->n_nodes; n++) {
    if (cut->phase[n] >= cut->n_phases) cut->n_phases = cut->phase[n] + 1;
  }
}

static const laci_shape *shape_or_scalar(const laci_auto_cut *cut, const int *values, int n,
                                         int at) {
  static const laci_shape none = {.rank = 0};
  return at < n && values[at] >= 0 ? &cut->types[values[at]].shape : &none;
}

int64_t laci_auto_cut_count_operations(const laci_auto_cut *cut, int node) {
  const laci_node *n = &cut->graph->nodes[node];
  const laci_shape *y = shape_or_scalar(cut, n->outputs, n->n_outputs, 0);
  int64_t results = laci_shape_count(y);
  return (results > 0 ? results : 0) +
         laci_engine_node_flops(n, shape_or_scalar(cut, n->inputs, n->n_inputs, 0),
                                shape_or_scalar(cut, n->inputs, n->n_inputs, 1), y);
}

static int64_t count_phase_operations(const laci_auto_cut *cut, int phase) {
  int64_t work = 0;
  for (int n = 0; n < cut->graph->n_nodes; n++) {
    if (cut->phase[n] == phase && !cut->constant[n]) work += laci_auto_cut_count_operations(cut, n);
  }
  return work;
}

/* Makes the fast nodes of the phase exact; returns true if there were any. reason: why they are not
 * fast, a text that lives as long as the cut. */
static bool make_phase_exact(laci_auto_cut *cut, int phase, const char *reason) {
  bool any = false;
  for (int n = 0; n < cut->graph->n_nodes; n++) {
    if (cut->phase[n] != phase || !cut->fast[n]) continue;
    cut->fast[n] = false;
    cut->reasons[n] = reason;
    any = true;
  }
  return any;
}

void laci_auto_cut_assign_phases(laci_auto_cut *cut, int64_t least_work) {
  bool dropped = true;
  while (dropped) {
    assign_lowest_phases(cut);
    dropped = false;
    for (int phase = 0; phase < cut->n_phases; phase += 2) {
      if (count_phase_operations(cut, phase) >= least_work) continue;
      dropped =
          make_phase_exact(cut, phase, "too little work between nodes that run exactly") || dropped;
    }
  }
}

lac_status laci_auto_cut_make_phase_exact(laci_auto_cut *cut, int phase, const lac_error *why,
                                          lac_error *err) {
  const char *reason = laci_arena_text(&cut->memory, why->text);
  if (!reason) return laci_fail_memory(err, "a reason");
  (void)make_phase_exact(cut, phase, reason);
  if (!cut->reason.text[0]) cut->reason = *why;
  return LAC_OK;
}
