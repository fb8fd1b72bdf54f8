/* SPDX-License-Identifier: Apache-2.0
 * Creates the automatic engine: a fast engine for the whole network where that can run it, else one
 * part of the network for each phase (cut.h). */
#include <string.h>

#include "base/error.h"
#include "cpu/openmp.h"
#include "cpu/pool.h"
#include "engine/auto/auto_in.h"
#include "engine/stepper.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/part.h"
#include "tensor/buf.h"

/** The state of creating the parts of the automatic engine. */
typedef struct builder {
  laci_auto *a;
  const laci_engine_options *options;
  laci_budget budget;
  bool *chosen; /* [n_nodes] the node belongs to the current part */
  bool *listed; /* [n_values] the value is already in the list that is being made */
  int refused;  /* number of a phase that the fast engine refused to plan; -1: none */
  lac_error why;
} builder;

/* Does the caller want an outline (a plan that cannot run) without the nodes that cannot be run? */
static bool is_partial(const builder *m) { return m->options->extent == LACI_EXTENT_PARTIAL; }

static bool is_numeric(lac_dtype dtype) {
  return laci_dtype_is_float(dtype) || laci_dtype_is_integer(dtype);
}

/* ---- Ports of the network ---- */

/* Describes an output whose shape or type depends on data: its port has no bytes before a run. */
static lac_status describe_unknown_output(const laci_auto *a, int value, laci_engine_port *port,
                                          lac_error *err) {
  const laci_type *type = &a->cut.types[value];
  const char *name = a->graph->values[value].name;
  if (type->dtype != LAC_DTYPE_NONE && !is_numeric(type->dtype)) {
    return laci_fail(err, LAC_UNSUPPORTED, "%s: elements of type %s", name,
                     lac_dtype_name(type->dtype));
  }
  *port = (laci_engine_port){.name = name, .type = *type, .open = true};
  port->type.dtype = laci_dtype_is_integer(type->dtype) ? LAC_DTYPE_I64 : LAC_DTYPE_F32;
  return LAC_OK;
}

static lac_status describe_ports(builder *m, const int *values, int n, laci_engine_port **ports,
                                 lac_error *err) {
  laci_auto *a = m->a;
  lac_status st = LAC_OK;
  *ports = laci_alloc((size_t)n, sizeof **ports);
  if (!*ports) return laci_fail_memory(err, "the engine's ports");
  for (int at = 0; at < n && !st; at++) {
    const laci_type *type = &a->cut.types[values[at]];
    bool closed = is_numeric(type->dtype) && laci_shape_is_known(&type->shape);
    if (ports == &a->inputs || closed) {
      st = laci_engine_port_init(a->graph, values[at], type, &(*ports)[at], err);
      if (!st) laci_engine_port_add_to_budget(a->graph, values[at], &(*ports)[at], &m->budget);
    } else {
      st = describe_unknown_output(a, values[at], &(*ports)[at], err);
    }
  }
  return st;
}

/* ---- The inputs and outputs of a part ---- */

static bool is_fast_node_of_phase(const laci_auto *a, int node, int phase) {
  return a->cut.phase[node] == phase && a->cut.fast[node];
}

/* Adds to the chosen nodes the constant nodes that they read: each part has its own copy, since
 * planning reads their content. Producers come before their readers, so one pass backward is
 * enough. */
static void choose_constant_nodes(builder *m) {
  const laci_graph *graph = m->a->graph;
  for (int n = graph->n_nodes - 1; n >= 0; n--) {
    const laci_node *reader = &graph->nodes[n];
    for (int at = 0; at < reader->n_inputs && m->chosen[n]; at++) {
      int value = reader->inputs[at];
      int producer = value >= 0 ? graph->values[value].producer : -1;
      if (producer >= 0 && m->a->cut.constant[producer]) m->chosen[producer] = true;
    }
  }
}

/* Chooses the nodes of a phase for the current part; returns true if there are any. */
static bool choose_phase_nodes(builder *m, int phase) {
  bool any = false;
  for (int n = 0; n < m->a->graph->n_nodes; n++) {
    m->chosen[n] = is_fast_node_of_phase(m->a, n, phase);
    any = any || m->chosen[n];
  }
  choose_constant_nodes(m);
  return any;
}

static void add_part_input(builder *m, laci_auto_part *part, int value) {
  const laci_value *v = &m->a->graph->values[value];
  bool inside = v->stored >= 0 || (v->producer >= 0 && m->chosen[v->producer]);
  if (inside || m->listed[value]) return;
  m->listed[value] = true;
  part->inputs[part->n_inputs++] = value;
}

/* Does a node of another phase, or the caller, read the value, which this phase computes? Parts
 * have their own copies of constants. */
static bool is_read_elsewhere(const laci_auto *a, int value, int phase) {
  const laci_value *v = &a->graph->values[value];
  bool copied = a->cut.constant[v->producer];
  for (int at = 0; at < v->n_readers; at++) {
    int reader = v->readers[at];
    if (!a->cut.fast[reader] || (a->cut.phase[reader] != phase && !copied)) return true;
  }
  return v->is_output;
}

static void list_inputs_and_outputs(builder *m, laci_auto_part *part, int phase) {
  const laci_graph *graph = m->a->graph;
  memset(m->listed, 0, (size_t)graph->n_values * sizeof *m->listed);
  for (int n = 0; n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    for (int at = 0; at < node->n_inputs && m->chosen[n]; at++) {
      if (node->inputs[at] >= 0) add_part_input(m, part, node->inputs[at]);
    }
    for (int at = 0; at < node->n_outputs && is_fast_node_of_phase(m->a, n, phase); at++) {
      int value = node->outputs[at];
      if (value >= 0 && is_read_elsewhere(m->a, value, phase))
        part->outputs[part->n_outputs++] = value;
    }
  }
}

/* ---- A fast part ---- */

/* Allocates buffers for values that go from part to part; the network's inputs and outputs are in
 * the caller's buffers. */
static lac_status allocate_values(laci_auto *a, const int *values, const laci_engine_port *ports,
                                  int n, lac_error *err) {
  for (int at = 0; at < n; at++) {
    const laci_value *v = &a->graph->values[values[at]];
    if (v->is_input || v->is_output || a->at[values[at]]) continue;
    a->at[values[at]] = laci_alloc(ports[at].size_bytes, 1);
    if (!a->at[values[at]]) return laci_fail_memory(err, v->name);
    a->ours[values[at]] = true;
  }
  return LAC_OK;
}

static lac_status make_engine(builder *m, laci_auto_part *part, lac_error *err) {
  laci_auto *a = m->a;
  laci_graph *graph;
  laci_engine_options o = *m->options;
  laci_type *types = laci_arena_alloc(&a->memory, (size_t)part->n_inputs, sizeof *types);
  if (!types) return laci_fail_memory(err, "a part of the network");
  for (int at = 0; at < part->n_inputs; at++) types[at] = a->cut.types[part->inputs[at]];
  const laci_part_ports ports = {.inputs = part->inputs,
                                 .types = types,
                                 .n_inputs = part->n_inputs,
                                 .outputs = part->outputs,
                                 .n_outputs = part->n_outputs};
  lac_status st = laci_graph_build_subgraph(&a->memory, a->graph, m->chosen, &ports, &graph, err);
  if (st) return st;
  o.engine = LACI_ENGINE_FAST;
  o.shapes = NULL;
  o.n_shapes = 0;
  o.recompute = 0;
  o.early_outputs = false;
  o.budget = &m->budget;
  st = laci_engine_create(graph, &o, &part->engine, err);
  if (st) return st;
  const laci_engine_memory planned = laci_engine_planned_memory(part->engine);
  a->planned.arena_bytes += planned.arena_bytes;
  a->planned.weight_bytes += planned.weight_bytes;
  part->n_steps = laci_engine_step_count(part->engine);
  (void)laci_engine_inputs(part->engine, &part->input_ports);
  (void)laci_engine_outputs(part->engine, &part->output_ports);
  st = allocate_values(a, part->inputs, part->input_ports, part->n_inputs, err);
  return st ? st : allocate_values(a, part->outputs, part->output_ports, part->n_outputs, err);
}

static lac_status make_fast_part(builder *m, int phase, lac_error *err) {
  laci_auto *a = m->a;
  laci_auto_part *part = &a->parts[a->n_parts];
  size_t n = (size_t)a->graph->n_values;
  if (!choose_phase_nodes(m, phase)) return LAC_OK;
  part->inputs = laci_arena_alloc(&a->memory, n, sizeof *part->inputs);
  part->outputs = laci_arena_alloc(&a->memory, n, sizeof *part->outputs);
  if (!part->inputs || !part->outputs) return laci_fail_memory(err, "a part of the network");
  list_inputs_and_outputs(m, part, phase);
  if (part->n_outputs == 0) { /* no other part reads a value of this part */
    part->n_inputs = 0;
    return LAC_OK;
  }
  part->in = laci_arena_alloc(&a->memory, (size_t)part->n_inputs, sizeof *part->in);
  part->out = laci_arena_alloc(&a->memory, (size_t)part->n_outputs, sizeof *part->out);
  if (!part->in || !part->out) return laci_fail_memory(err, "a part of the network");
  lac_error why = {0};
  lac_status st = make_engine(m, part, &why);
  if (st == LAC_UNSUPPORTED || st == LAC_BAD_SHAPE) {
    m->refused = phase;
    m->why = why;
  }
  if (st) {
    laci_engine_destroy(part->engine);
    part->engine = NULL;
    return laci_fail(err, st, "%s", why.text);
  }
  a->n_parts++;
  return LAC_OK;
}

/* ---- An exact part ---- */

/* Checks that the exact engine can run the node. Nodes in bodies (of If, Loop, Scan) are not
 * checked: they may never run, and fail when they do. */
static lac_status check_exact_node(const laci_node *node, lac_error *err) {
  return node->body || laci_node_control_flow_role(node)
             ? LAC_OK
             : laci_engine_check_has_evaluation(node, err);
}

static lac_status make_exact_part(builder *m, int phase, lac_error *err) {
  laci_auto *a = m->a;
  laci_auto_part *part = &a->parts[a->n_parts];
  part->nodes = laci_arena_alloc(&a->memory, (size_t)a->graph->n_nodes, sizeof *part->nodes);
  if (!part->nodes) return laci_fail_memory(err, "a part of the network");
  for (int n = 0; n < a->graph->n_nodes; n++) {
    if (a->cut.phase[n] != phase || a->cut.fast[n]) continue;
    lac_status st = is_partial(m) ? LAC_OK : check_exact_node(&a->graph->nodes[n], err);
    if (st) return st;
    part->nodes[part->n_steps++] = n;
  }
  a->n_parts += part->n_steps > 0;
  return LAC_OK;
}

/* ---- Values of exact nodes ---- */

static void mark_exact_values(laci_auto *a) {
  const laci_graph *graph = a->graph;
  for (int n = 0; n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    for (int at = 0; at < node->n_inputs + node->n_captures && !a->cut.fast[n]; at++) {
      int value = at < node->n_inputs ? node->inputs[at] : node->captures[at - node->n_inputs];
      if (value >= 0) a->in_stepper[value] = true;
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
static lac_status plan_exact_parts(builder *m, lac_error *err) {
  laci_auto *a = m->a;
  const laci_graph *graph = a->graph;
  laci_type *types = laci_alloc((size_t)graph->n_values, sizeof *types);
  bool *skipped = laci_alloc((size_t)graph->n_stored, sizeof *skipped);
  lac_status st = types && skipped ? LAC_OK : laci_fail_memory(err, "the plan of a run");
  for (int v = 0; v < graph->n_values && !st; v++) {
    int producer = graph->values[v].producer;
    bool made = producer >= 0 && !a->cut.fast[producer];
    types[v] = a->cut.types[v];
    if (!a->in_stepper[v] && !made) types[v].shape = laci_shape_unknown();
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
  for (int at = 0; at < a->n_parts; at++) laci_engine_destroy(a->parts[at].engine);
  for (int v = 0; a->at && a->ours && v < a->graph->n_values; v++) {
    if (a->ours[v]) laci_free(a->at[v]);
    a->at[v] = NULL;
    a->ours[v] = false;
  }
  a->n_parts = 0;
  a->planned = (laci_engine_memory){0};
  laci_arena_clear(&a->memory);
}

static lac_status make_parts(builder *m, lac_error *err) {
  laci_auto *a = m->a;
  lac_status st = LAC_OK;
  m->refused = -1;
  a->parts = laci_arena_alloc(&a->memory, (size_t)a->cut.n_phases, sizeof *a->parts);
  if (!a->parts) return laci_fail_memory(err, "the parts of the network");
  for (int phase = 0; phase < a->cut.n_phases && !st; phase++) {
    st = phase % 2 ? make_exact_part(m, phase, err) : make_fast_part(m, phase, err);
  }
  a->n_steps = 0;
  for (int at = 0; at < a->n_parts; at++) {
    a->parts[at].first_step = a->n_steps;
    a->n_steps += a->parts[at].n_steps;
  }
  return st;
}

/* Creates the parts. A phase that the fast engine refuses to plan, for example for lack of
 * executable memory, becomes exact. */
static lac_status make_parts_with_fallback(builder *m, lac_error *err) {
  laci_auto *a = m->a;
  const laci_budget before = m->budget;
  lac_error why = {0};
  const int64_t least = is_partial(m) ? 0 : LACI_AUTO_LEAST_WORK;
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

static lac_status cut_into_phases(builder *m, lac_error *err) {
  laci_auto *a = m->a;
  const laci_graph *graph = a->graph;
  size_t n = (size_t)graph->n_values;
  a->at = laci_alloc(n, sizeof *a->at);
  a->ours = laci_alloc(n, sizeof *a->ours);
  a->in_stepper = laci_alloc(n, sizeof *a->in_stepper);
  m->chosen = laci_alloc((size_t)graph->n_nodes, sizeof *m->chosen);
  m->listed = laci_alloc(n, sizeof *m->listed);
  bool whole = a->at && a->ours && a->in_stepper && m->chosen && m->listed;
  lac_status st = whole ? LAC_OK : laci_fail_memory(err, "the engine");
  if (!st && is_partial(m)) return make_parts_with_fallback(m, err);
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
  builder m = {.a = a,
               .options = options,
               .budget = options->budget ? *options->budget : laci_budget_with_limit(UINT64_MAX)};
  a->graph = graph;
  lac_status st = laci_auto_cut_find_fast_nodes(&a->cut, options, err);
  bool all = !st && a->cut.reason.text[0] == '\0';
  if (all && refusal->status == LAC_BAD_SHAPE && !is_partial(&m))
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
  lac_status st = laci_auto_cut_init(&a->cut, graph, options, &doubles, &why);
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
  laci_free(a->text);
  laci_free(a);
}
