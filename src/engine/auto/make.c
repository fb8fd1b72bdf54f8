/* SPDX-License-Identifier: Apache-2.0
 * Creates the automatic engine: a fast engine for the whole network where that can run it, else one
 * part of the network for each phase (cut.h). */
#include <string.h>

#include "base/error.h"
#include "cpu/openmp.h"
#include "cpu/pool.h"
#include "engine/auto/builder_in.h"
#include "engine/auto/choice.h"
#include "engine/auto/inline.h"
#include "engine/stepper.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "tensor/buf.h"

/* Does the caller want an outline (a plan that cannot run) without the nodes that cannot be run? */
static bool is_outline_partial(const laci_auto_builder *m) {
  return m->options->extent == LACI_EXTENT_PARTIAL;
}

/* ---- Ports of the network ---- */

/* Describes an output whose shape or type depends on data: its port has no bytes before a run. */
static lac_status describe_unknown_output(const laci_auto *a, int value, laci_engine_port *port,
                                          lac_error *err) {
  const laci_type *type = &a->cut.types[value];
  const char *name = a->graph->values[value].name;
  if (type->dtype != LAC_DTYPE_NONE && !laci_dtype_is_numeric(type->dtype)) {
    return laci_fail(err, LAC_UNSUPPORTED, "%s: elements of type %s", name,
                     lac_dtype_name(type->dtype));
  }
  *port = (laci_engine_port){.name = name, .type = *type, .open = true};
  port->type.dtype = laci_dtype_is_integer(type->dtype) ? LAC_DTYPE_I64 : LAC_DTYPE_F32;
  return LAC_OK;
}

static lac_status describe_ports(laci_auto_builder *m, const int *values, int n,
                                 laci_engine_port **ports, lac_error *err) {
  laci_auto *a = m->a;
  lac_status st = LAC_OK;
  *ports = laci_alloc((size_t)n, sizeof **ports);
  if (!*ports) return laci_fail_memory(err, "the engine's ports");
  for (int at = 0; at < n && !st; at++) {
    const laci_type *type = &a->cut.types[values[at]];
    bool closed = laci_dtype_is_numeric(type->dtype) && laci_shape_is_known(&type->shape);
    if (ports == &a->inputs || closed) {
      st = laci_engine_port_init(a->graph, values[at], type, &(*ports)[at], err);
      if (!st) laci_engine_port_add_to_budget(a->graph, values[at], &(*ports)[at], &m->budget);
    } else {
      st = describe_unknown_output(a, values[at], &(*ports)[at], err);
    }
  }
  return st;
}

/* ---- An exact phase ---- */

/* Checks that the exact engine can run the node. Nodes in bodies (of If, Loop, Scan) are not
 * checked: they may never run, and fail when they do. */
static lac_status check_exact_node(const laci_node *node, lac_error *err) {
  return node->body || laci_node_control_flow_role(node)
             ? LAC_OK
             : laci_engine_check_has_evaluation(node, err);
}

static lac_status add_exact_node(laci_auto_builder *m, laci_auto_part *part, int node,
                                 lac_error *err) {
  laci_auto *a = m->a;
  lac_status st = is_outline_partial(m) ? LAC_OK : check_exact_node(&a->graph->nodes[node], err);
  if (st) return st;
  const size_t n = (size_t)a->graph->n_nodes;
  if (!part->nodes) part->nodes = laci_arena_alloc(&a->memory, n, sizeof *part->nodes);
  if (!part->nodes) return laci_fail_memory(err, "a part of the network");
  part->nodes[part->n_nodes++] = node;
  return LAC_OK;
}

/* Makes a part of an If and the nodes of its branches. */
static lac_status make_choice_part(laci_auto_builder *m, laci_auto_choice *choice, lac_error *err) {
  laci_auto *a = m->a;
  laci_auto_part *part = &a->parts[a->n_parts++];
  part->choice = choice;
  lac_status st = LAC_OK;
  for (int b = 0; b < 2; b++) part->n_steps += choice->branches[b].part.n_steps;
  for (int n = 0; n <= choice->node && !st; n++) {
    if (n != choice->node && !laci_auto_is_in_choice(a->graph, choice, n)) continue;
    st = add_exact_node(m, part, n, err);
    part->n_steps += laci_auto_is_exact_step(a, part, n);
  }
  return st;
}

static void end_exact_part(laci_auto *a) {
  laci_auto_part *part = &a->parts[a->n_parts];
  part->n_steps = part->n_nodes;
  a->n_parts += part->n_nodes > 0;
}

/* Returns the If outside of all bodies in whose branch the node is; -1: it is in none, or in a
 * loop. */
static int find_outermost_choice(const laci_graph *graph, const laci_node *node) {
  int end = -1;
  for (int body = node->body; body; body = graph->bodies[body - 1].outer)
    end = graph->bodies[body - 1].branch >= 0 ? graph->bodies[body - 1].end : -1;
  return end;
}

/* Creates the engines of the branches of all Ifs of the phase. choices: [n_nodes] the choice of
 * each If; NULL: none of its branches has an engine. */
static lac_status make_choices(laci_auto_builder *m, int phase, laci_auto_choice **choices,
                               lac_error *err) {
  const laci_auto *a = m->a;
  lac_status st = LAC_OK;
  for (int n = 0; n < a->graph->n_nodes && !st; n++) {
    const laci_node *node = &a->graph->nodes[n];
    if (a->cut.phase[n] != phase || a->cut.fast[n] || node->body) continue;
    if (laci_node_control_flow_role(node) != LACI_CONTROL_CHOICE) continue;
    st = laci_auto_make_choice(m, n, &choices[n], err);
  }
  return st;
}

/* Makes the parts of an exact phase: its nodes in order. An If with engines, whose branches run
 * where it is, is a part between two parts of other nodes. */
static lac_status make_exact_parts(laci_auto_builder *m, int phase, lac_error *err) {
  laci_auto *a = m->a;
  laci_auto_choice **choices = laci_alloc((size_t)a->graph->n_nodes, sizeof(laci_auto_choice *));
  if (!choices) return laci_fail_memory(err, "a part of the network");
  lac_status st = make_choices(m, phase, choices, err);
  for (int n = 0; n < a->graph->n_nodes && !st; n++) {
    if (a->cut.phase[n] != phase || a->cut.fast[n]) continue;
    const int around = find_outermost_choice(a->graph, &a->graph->nodes[n]);
    if (around >= 0 && choices[around]) continue;
    if (choices[n]) {
      end_exact_part(a);
      st = make_choice_part(m, choices[n], err);
      choices[n] = NULL;
    } else {
      st = add_exact_node(m, &a->parts[a->n_parts], n, err);
    }
  }
  for (int n = 0; n < a->graph->n_nodes; n++) laci_auto_destroy_choice(choices[n]);
  laci_free((void *)choices);
  end_exact_part(a);
  return st;
}

/* ---- Values of exact nodes ---- */

/* Is the node stepped by this engine's stepper in some run? */
static bool is_stepped(const laci_auto *a, int node) {
  return !a->cut.fast[node] && !a->delegated[node];
}

static bool is_made_by_stepper(const laci_auto *a, int value) {
  const int producer = a->graph->values[value].producer;
  return producer >= 0 && is_stepped(a, producer);
}

static bool is_delegated(const laci_auto *a, int value) {
  const int producer = a->graph->values[value].producer;
  return producer >= 0 && a->delegated[producer];
}

static void mark_exact_values(laci_auto *a) {
  const laci_graph *graph = a->graph;
  for (int n = 0; n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    for (int at = 0; at < node->n_inputs + node->n_captures && is_stepped(a, n); at++) {
      int value = at < node->n_inputs ? node->inputs[at] : node->captures[at - node->n_inputs];
      if (value >= 0 && !is_delegated(a, value)) a->in_stepper[value] = true;
    }
  }
  for (int at = 0; at < graph->n_outputs; at++) {
    int producer = graph->values[graph->outputs[at]].producer;
    if (producer < 0) a->in_stepper[graph->outputs[at]] = true;
  }
}

/* Loads the stored tensors that nodes of the exact engine (cut.h) read. Reserves memory in the
 * budget for the values that these nodes read and compute, as far as their sizes are known. Fails
 * if the budget does not suffice. */
static lac_status plan_exact_parts(laci_auto_builder *m, lac_error *err) {
  laci_auto *a = m->a;
  const laci_graph *graph = a->graph;
  laci_type *types = laci_alloc((size_t)graph->n_values, sizeof *types);
  bool *skipped = laci_alloc((size_t)graph->n_stored, sizeof *skipped);
  lac_status st = types && skipped ? LAC_OK : laci_fail_memory(err, "the plan of a run");
  for (int v = 0; v < graph->n_values && !st; v++) {
    types[v] = a->cut.types[v];
    if (!a->in_stepper[v] && !is_made_by_stepper(a, v)) types[v].shape = laci_shape_unknown();
  }
  for (int s = 0; s < graph->n_stored && !st; s++) {
    skipped[s] = graph->stored[s].value < 0 || !a->in_stepper[graph->stored[s].value];
  }
  if (!st) st = laci_engine_graph_init(&a->own, graph, m->options, skipped, &m->budget, err);
  if (!st) {
    laci_budget with = m->budget;
    a->planned.weight_bytes += a->own.size_bytes;
    a->budget = m->budget;
    st = laci_stepper_plan_memory(LACI_ENGINE_EXACT, &a->own.graph, types, skipped, &with, err);
    a->planned.arena_bytes += (size_t)(with.needed - m->budget.needed);
    m->budget = with;
  }
  if (!st) st = laci_budget_check(&m->budget, "the run", err);
  laci_free(types);
  laci_free(skipped);
  return st;
}

/* ---- The whole engine ---- */

static void destroy_parts(laci_auto *a) {
  for (int at = 0; at < a->n_parts; at++) {
    laci_engine_destroy(a->parts[at].engine);
    laci_auto_destroy_choice(a->parts[at].choice);
  }
  for (int v = 0; a->at && a->ours && a->buffered && v < a->graph->n_values; v++) {
    if (a->ours[v]) laci_free(a->at[v]);
    a->at[v] = NULL;
    a->ours[v] = a->buffered[v] = false;
  }
  for (int n = 0; a->delegated && n < a->graph->n_nodes; n++) a->delegated[n] = false;
  a->n_parts = 0;
  a->planned = (laci_engine_memory){0};
  laci_arena_clear(&a->memory);
}

/* Are all readers of the node's results branches with engines and fast parts, which have their own
 * copies of constants? */
static bool is_copied_by_all_readers(const laci_auto *a, int node) {
  const laci_node *n = &a->graph->nodes[node];
  for (int at = 0; at < n->n_outputs; at++) {
    if (n->outputs[at] < 0) continue;
    const laci_value *v = &a->graph->values[n->outputs[at]];
    if (v->is_output) return false;
    for (int r = 0; r < v->n_readers; r++) {
      if (is_stepped(a, v->readers[r])) return false;
    }
  }
  return true;
}

/* Removes constant nodes whose results no exact node reads from the exact parts. */
static void drop_unread_constants(laci_auto *a) {
  for (int n = a->graph->n_nodes - 1; n >= 0; n--) {
    if (!is_stepped(a, n) || !a->cut.constant[n] || a->graph->nodes[n].body) continue;
    a->delegated[n] = is_copied_by_all_readers(a, n);
  }
  for (int at = 0; at < a->n_parts; at++) {
    laci_auto_part *part = &a->parts[at];
    size_t kept = 0;
    if (part->engine || part->choice) continue;
    for (size_t n = 0; n < part->n_nodes; n++) {
      if (!a->delegated[part->nodes[n]]) part->nodes[kept++] = part->nodes[n];
    }
    part->n_steps = part->n_nodes = kept;
  }
}

static void number_steps(laci_auto *a) {
  a->n_steps = 0;
  for (int at = 0; at < a->n_parts; at++) {
    laci_auto_part *part = &a->parts[at];
    part->first_step = a->n_steps;
    for (int b = 0; part->choice && b < 2; b++) {
      laci_auto_part *branch = &part->choice->branches[b].part;
      branch->first_step =
          b ? part->first_step + part->choice->branches[0].part.n_steps : part->first_step;
    }
    a->n_steps += part->n_steps;
  }
}

static void count_exact_nodes_of_branches(laci_auto *a, const laci_auto_choice *choice) {
  for (int b = 0; b < 2; b++) {
    if (!choice->branches[b].part.engine) continue;
    const laci_engine_exact inner =
        laci_engine_describe_exact_nodes(choice->branches[b].part.engine);
    a->exact.n_nodes += inner.n_nodes;
    if (!a->exact.reason) a->exact.reason = inner.reason;
  }
}

/* Counts the exact steps of a part; *first: the first of their nodes. */
static int count_exact_nodes(const laci_auto *a, const laci_auto_part *part, int *first) {
  int count = 0;
  for (size_t n = 0; n < part->n_nodes; n++) {
    const int node = part->nodes[n];
    if (!laci_auto_is_exact_step(a, part, node)) continue;
    /* nodes that begin a body are not in the file, and therefore not counted */
    if (laci_node_control_flow_role(&a->graph->nodes[node]) == LACI_CONTROL_BEGIN) continue;
    if (count++ == 0) *first = node;
  }
  return count;
}

/* Counts the nodes that run exactly, and says why: of those in branches first, since they do the
 * most work. */
static void describe_exact_nodes(laci_auto *a) {
  const char *reason = NULL;
  bool any = false;
  a->exact = (laci_engine_exact){0};
  for (int at = 0; at < a->n_parts; at++) {
    const laci_auto_part *part = &a->parts[at];
    int first = -1;
    const int count = count_exact_nodes(a, part, &first);
    a->exact.n_nodes += count;
    if (part->choice) count_exact_nodes_of_branches(a, part->choice);
    if (count && part->choice && !a->exact.reason) a->exact.reason = a->cut.reasons[first];
    if (count && !reason) reason = a->cut.reasons[first];
    any |= part->choice != NULL;
  }
  if (!a->exact.reason && a->exact.n_nodes) a->exact.reason = any ? reason : a->cut.reason.text;
}

static lac_status make_parts(laci_auto_builder *m, lac_error *err) {
  laci_auto *a = m->a;
  lac_status st = LAC_OK;
  m->refused = -1;
  /* each If that is a part divides an exact phase once more; it has two bodies */
  const size_t most = (size_t)a->cut.n_phases + (size_t)a->graph->n_bodies + 1;
  a->parts = laci_arena_alloc(&a->memory, most, sizeof *a->parts);
  if (!a->parts) return laci_fail_memory(err, "the parts of the network");
  for (int phase = 0; phase < a->cut.n_phases && !st; phase++) {
    st = phase % 2 ? make_exact_parts(m, phase, err) : laci_auto_make_fast_part(m, phase, err);
  }
  if (st) return st;
  drop_unread_constants(a);
  number_steps(a);
  describe_exact_nodes(a);
  return LAC_OK;
}

/* Creates the parts. A phase that the fast engine refuses to plan, for example for lack of
 * executable memory, becomes exact. */
static lac_status make_parts_with_fallback(laci_auto_builder *m, lac_error *err) {
  laci_auto *a = m->a;
  const laci_budget before = m->budget;
  lac_error why = {0};
  const int64_t least = m->least_work = is_outline_partial(m) ? 0 : LACI_AUTO_LEAST_WORK;
  laci_auto_cut_assign_phases(&a->cut, least);
  lac_status st = make_parts(m, &why);
  while (st && m->refused >= 0) {
    destroy_parts(a);
    m->budget = before;
    st = laci_auto_cut_make_phase_exact(&a->cut, m->refused, &m->why, err);
    if (st) return st;
    laci_auto_cut_assign_phases(&a->cut, least);
    st = make_parts(m, &why);
  }
  return st ? laci_fail(err, st, "%s", why.text) : LAC_OK;
}

static lac_status cut_into_phases(laci_auto_builder *m, lac_error *err) {
  laci_auto *a = m->a;
  const laci_graph *graph = a->graph;
  size_t n = (size_t)graph->n_values;
  a->at = laci_alloc(n, sizeof *a->at);
  a->ours = laci_alloc(n, sizeof *a->ours);
  a->in_stepper = laci_alloc(n, sizeof *a->in_stepper);
  a->buffered = laci_alloc(n, sizeof *a->buffered);
  a->delegated = laci_alloc((size_t)graph->n_nodes, sizeof *a->delegated);
  m->chosen = laci_alloc((size_t)graph->n_nodes, sizeof *m->chosen);
  m->listed = laci_alloc(n, sizeof *m->listed);
  bool whole =
      a->at && a->ours && a->in_stepper && a->buffered && a->delegated && m->chosen && m->listed;
  lac_status st = whole ? LAC_OK : laci_fail_memory(err, "the engine");
  if (!st && is_outline_partial(m)) return make_parts_with_fallback(m, err);
  if (!st) st = describe_ports(m, graph->inputs, graph->n_inputs, &a->inputs, err);
  if (!st) st = describe_ports(m, graph->outputs, graph->n_outputs, &a->outputs, err);
  if (!st) st = make_parts_with_fallback(m, err);
  if (!st) mark_exact_values(a);
  if (!st) st = plan_exact_parts(m, err);
  if (!st) st = laci_pool_create_on(m->options->parallel, m->options->threads, &a->pool, err);
  return st ? st : laci_auto_write_text(a, err);
}

/* Divides the network into parts. refusal: why the fast engine cannot run it as a whole. If that
 * engine can run every node, but refuses the shapes, the result is this failure. */
static lac_status divide_network(laci_auto *a, const laci_graph *graph,
                                 const laci_engine_options *options, const lac_error *refusal,
                                 lac_error *err) {
  laci_auto_builder m = {
      .a = a,
      .options = options,
      .budget = options->budget ? *options->budget : laci_budget_with_limit(UINT64_MAX)};
  a->graph = graph;
  lac_status st = laci_auto_cut_find_fast_nodes(&a->cut, options, err);
  bool all = !st && a->cut.reason.text[0] == '\0';
  if (all && refusal->status == LAC_BAD_SHAPE && !is_outline_partial(&m))
    st = laci_fail(err, LAC_BAD_SHAPE, "%s", refusal->text);
  if (all) a->cut.reason = *refusal;
  if (!st && options->observer) {
    st = laci_fail(err, LAC_UNSUPPORTED, "values of a network that is run in parts are not shown");
  }
  if (!st) st = cut_into_phases(&m, err);
  laci_free(m.chosen);
  laci_free(m.listed);
  if (!st && options->budget) *options->budget = m.budget;
  return st;
}

/* Can threads be started? They cannot in a process that was forked after this thread had a team of
 * OpenMP threads (cpu/openmp.h). Parts of the network would fail for the same reason as the
 * whole. */
static bool has_threads(int threads) {
  laci_pool *pool = NULL;
  if (laci_pool_create(threads, &pool, NULL)) return false;
  const bool reached = laci_openmp_can_use_threads(laci_pool_threads(pool));
  laci_pool_destroy(pool);
  return reached;
}

lac_status laci_auto_create(const laci_engine_row *row, const laci_graph *graph,
                            const laci_engine_options *options, void **self, lac_error *err) {
  (void)row;
  laci_engine_options fast = *options;
  lac_error why = {0};
  laci_auto *a = laci_alloc(1, sizeof *a);
  if (!a) return laci_fail_memory(err, "the engine");
  fast.engine = LACI_ENGINE_FAST;
  bool doubles = false;
  lac_status st = LAC_OK;
  /* an observer may ask for the results of any If */
  if (!options->observer) st = laci_auto_inline_branches(graph, options, &a->inlined, &graph, &why);
  if (!st) st = laci_auto_cut_init(&a->cut, graph, options, &doubles, &why);
  if (!st && doubles) st = laci_fail(&why, LAC_UNSUPPORTED, "elements of type f64");
  if (!st) st = laci_engine_create(graph, &fast, &a->whole, &why);
  bool divided = st == LAC_UNSUPPORTED || st == LAC_BAD_SHAPE;
  if (divided && options->bf16)
    divided = laci_engine_find_dtype_support(LACI_ENGINE_FAST, LAC_DTYPE_BF16) == LACI_DTYPE_HERE;
  divided = divided && has_threads(options->threads);
  why.status = st;
  if (!divided) laci_auto_cut_clear(&a->cut);
  if (divided) st = divide_network(a, graph, options, &why, err);
  else if (st) st = laci_hint(err, why.hint, laci_fail(err, st, "%s", why.text));
  if (st) laci_auto_destroy(a);
  else *self = a;
  return st;
}

void laci_auto_destroy(void *self) {
  laci_auto *a = self;
  if (!a) return;
  laci_engine_destroy(a->whole);
  if (a->graph) destroy_parts(a);
  laci_stepper_destroy(a->stepper);
  laci_engine_graph_clear(&a->own);
  laci_auto_cut_clear(&a->cut);
  laci_pool_destroy(a->pool);
  laci_free(a->inputs);
  laci_free(a->outputs);
  laci_free((void *)a->at);
  laci_free(a->ours);
  laci_free(a->in_stepper);
  laci_free(a->buffered);
  laci_free(a->delegated);
  laci_arena_clear(&a->inlined);
  laci_free(a->text);
  laci_free(a);
}
