/* SPDX-License-Identifier: Apache-2.0
 * The plain engine as a row of the list of engines: planned once for fixed shapes, one step for
 * each node, all in double. Its stepping functions are those of plain.h. */

#include "base/budget.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/plural.h"
#include "cpu/pool.h"
#include "engine/plain/plain.h"
#include "engine/row.h"
#include "graph/op.h"
#include "graph/sizes.h"
#include "tensor/buf.h"

typedef struct plan {
  laci_engine_graph own;
  laci_type *types; /* [n_values] type of each value */
  laci_pool *pool;
  laci_engine_port *inputs, *outputs, *observed;
  int *values, n_observed; /* [n_observed] values that the observer sees */
  int *observed_at;        /* [n_values] index of the value in `observed`; -1: it is not observed.
                              NULL: no observer */
  laci_engine_on_value *on_value;
  void *on_value_context;
  laci_engine_memory memory;
  char *text;
} plan;

static lac_status check_node_is_supported(const laci_node *node, lac_error *err) {
  return laci_node_control_flow_role(node) ? LAC_OK : laci_engine_check_has_evaluation(node, err);
}

static bool supports_node(const laci_engine_row *row, const laci_graph *graph,
                          const laci_node *node, lac_error *why) {
  (void)row;
  (void)graph;
  return !check_node_is_supported(node, why);
}

/* ---- Planning ---- */

static lac_status check_all_nodes_supported(const laci_graph *graph, lac_error *err) {
  lac_status st = LAC_OK;
  for (int n = 0; n < graph->n_nodes && !st; n++) {
    st = check_node_is_supported(&graph->nodes[n], err);
  }
  return st;
}

static lac_status describe_ports(const plan *p, const int *values, int n, laci_engine_port **ports,
                                 laci_budget *budget, lac_error *err) {
  lac_status st = LAC_OK;
  *ports = laci_alloc((size_t)n, sizeof **ports);
  if (!*ports) return laci_fail_memory(err, "the engine's ports");
  for (int at = 0; at < n && !st; at++) {
    int value = values[at];
    st = laci_engine_port_init(&p->own.graph, value, &p->types[value], &(*ports)[at], err);
    if (!st) laci_engine_port_add_to_budget(&p->own.graph, value, &(*ports)[at], budget);
  }
  return st;
}

static lac_status plan_observer(plan *p, const laci_engine_observer *observer, lac_error *err) {
  lac_status st = laci_engine_observer_check(&p->own.graph, observer, err);
  if (st || !observer) return st;
  size_t n = (size_t)observer->n_values;
  p->on_value = observer->on_value;
  p->on_value_context = observer->context;
  p->observed = laci_alloc(n, sizeof *p->observed);
  p->values = laci_alloc(n, sizeof *p->values);
  p->observed_at = laci_alloc((size_t)p->own.graph.n_values, sizeof *p->observed_at);
  if (!p->observed || !p->values || !p->observed_at) return laci_fail_memory(err, "the observer");
  for (int v = 0; v < p->own.graph.n_values; v++) p->observed_at[v] = -1;
  for (int at = 0; at < observer->n_values && !st; at++) {
    int value = p->values[at] = observer->values[at];
    p->observed_at[value] = at;
    st = laci_engine_port_init(&p->own.graph, value, &p->types[value], &p->observed[at], err);
  }
  p->n_observed = observer->n_values;
  return st;
}

static lac_status plan_memory(plan *p, laci_budget *budget, lac_error *err) {
  uint64_t before = budget->needed;
  lac_status st = laci_plain_plan_memory(&p->own.graph, p->types, NULL, budget, err);
  p->memory.arena_bytes = (size_t)(budget->needed - before);
  return st ? st : laci_budget_check(budget, "the run", err);
}

/* ---- Steps ---- */

static int get_value_or_minus_one(const int *values, int n, int at) {
  return at < n ? values[at] : -1;
}

static int64_t bytes_of_value(const plan *p, int value) {
  if (value < 0) return 0;
  int64_t count = laci_shape_count(&p->types[value].shape);
  return count > 0 ? count * (int64_t)sizeof(double) : 0;
}

static size_t step_count(const void *self) {
  const plan *p = self;
  return (size_t)p->own.graph.n_nodes;
}

static laci_engine_step describe_step(const void *self, size_t at) {
  const plan *p = self;
  const laci_node *node = &p->own.graph.nodes[at];
  laci_engine_step step = {.name = node->name[0] ? node->name : NULL,
                           .op = node->type,
                           .what = node->type,
                           .kernel = LACI_ENGINE_EXACT,
                           .plain = true};
  int x = get_value_or_minus_one(node->inputs, node->n_inputs, 0),
      w = get_value_or_minus_one(node->inputs, node->n_inputs, 1);
  int y = get_value_or_minus_one(node->outputs, node->n_outputs, 0);
  if (x >= 0 && w >= 0 && y >= 0) {
    step.flops =
        laci_engine_node_flops(node, &p->types[x].shape, &p->types[w].shape, &p->types[y].shape);
  }
  for (int i = 0; i < node->n_inputs; i++) step.bytes_read += bytes_of_value(p, node->inputs[i]);
  for (int i = 0; i < node->n_outputs; i++)
    step.bytes_written += bytes_of_value(p, node->outputs[i]);
  return step;
}

static void list_nodes(const void *self, const laci_graph *graph, laci_engine_node *nodes) {
  (void)self;
  for (int n = 0; n < graph->n_nodes; n++) {
    nodes[n] = (laci_engine_node){.runner = LACI_RUNNER_EXACT,
                                  .reason = "the engine '" LACI_ENGINE_EXACT "' runs every node"};
  }
}

/* Writes the plan's text to `to`; with NULL it only returns the length. */
static size_t write_plan_text(const plan *p, char *to, size_t capacity) {
  char shape[128];
  size_t used = laci_engine_format_text(to, capacity, "step  %-28s %-26s node\n", "what", "result");
  for (int n = 0; n < p->own.graph.n_nodes; n++) {
    const laci_node *node = &p->own.graph.nodes[n];
    int y = get_value_or_minus_one(node->outputs, node->n_outputs, 0);
    if (y >= 0) laci_shape_text(&p->types[y].shape, shape, sizeof shape);
    used += laci_engine_format_text(to ? to + used : NULL, capacity - used, "%4d  %-28s %-26s %s\n",
                                    n, node->type, y >= 0 ? shape : "", node->name);
  }
  return used + laci_engine_format_text(
                    to ? to + used : NULL, capacity - used,
                    "%d step%s by the plain operator; f64, %d thread%s; values %.1f MB\n",
                    p->own.graph.n_nodes, laci_plural(p->own.graph.n_nodes),
                    laci_pool_threads(p->pool), laci_plural(laci_pool_threads(p->pool)),
                    (double)p->memory.arena_bytes / 1e6);
}

static lac_status make_plan_text(plan *p, lac_error *err) {
  size_t capacity = write_plan_text(p, NULL, 0) + 1;
  p->text = laci_alloc(capacity, 1);
  if (!p->text) return laci_fail_memory(err, "the plan's text");
  (void)write_plan_text(p, p->text, capacity);
  return LAC_OK;
}

/* ---- Creating ---- */

static void destroy_engine(void *self) {
  plan *p = self;
  if (!p) return;
  laci_engine_graph_clear(&p->own);
  laci_free(p->types);
  laci_pool_destroy(p->pool);
  laci_free(p->inputs);
  laci_free(p->outputs);
  laci_free(p->observed);
  laci_free(p->values);
  laci_free(p->observed_at);
  laci_free(p->text);
  laci_free(p);
}

static lac_status make_plan(plan *p, const laci_graph *graph, const laci_engine_options *options,
                            laci_budget *budget, lac_error *err) {
  lac_status st = laci_engine_graph_init(&p->own, graph, options, NULL, budget, err);
  p->memory.weight_bytes = p->own.size_bytes;
  if (!st) st = check_all_nodes_supported(graph, err);
  if (!st)
    st = laci_graph_infer_types(&p->own.graph, options->shapes, options->n_shapes, &p->types, err);
  if (!st) st = laci_engine_check_inputs(&p->own.graph, p->types, err);
  if (!st) st = describe_ports(p, graph->inputs, graph->n_inputs, &p->inputs, budget, err);
  if (!st) st = describe_ports(p, graph->outputs, graph->n_outputs, &p->outputs, budget, err);
  if (!st) st = laci_budget_check(budget, "the run's inputs and outputs", err);
  if (!st) st = plan_observer(p, options->observer, err);
  if (!st) st = plan_memory(p, budget, err);
  if (!st) st = laci_pool_create_on(options->parallel, options->threads, &p->pool, err);
  return st ? st : make_plan_text(p, err);
}

static lac_status create_engine(const laci_engine_row *row, const laci_graph *graph,
                                const laci_engine_options *options, void **self, lac_error *err) {
  (void)row;
  if (options->bf16) {
    return laci_fail(err, LAC_UNSUPPORTED, "the plain engine does not compute in bf16");
  }
  plan *p = laci_alloc(1, sizeof *p);
  if (!p) return laci_fail_memory(err, "the engine");
  laci_budget budget = options->budget ? *options->budget : laci_budget_with_limit(UINT64_MAX);
  lac_status st = make_plan(p, graph, options, &budget, err);
  if (st) destroy_engine(p);
  else *self = p;
  if (!st && options->budget) *options->budget = budget;
  return st;
}

static int get_inputs(const void *self, const laci_engine_port **ports) {
  const plan *p = self;
  *ports = p->inputs;
  return p->own.graph.n_inputs;
}

static int get_outputs(const void *self, const laci_engine_port **ports) {
  const plan *p = self;
  *ports = p->outputs;
  return p->own.graph.n_outputs;
}

static int thread_count(const void *self) {
  const plan *p = self;
  return laci_pool_threads(p->pool);
}

static laci_engine_memory planned_memory(const void *self) {
  const plan *p = self;
  return p->memory;
}

static const char *plan_text(const void *self) {
  const plan *p = self;
  return p->text;
}

/* ---- Running ---- */

static lac_status observe_value(const plan *p, int value, const laci_buf *buf, lac_error *err) {
  int at = p->observed_at ? p->observed_at[value] : -1;
  if (at < 0) return LAC_OK;
  const laci_engine_port *port = &p->observed[at];
  void *content = laci_alloc(port->size_bytes, 1);
  if (!content) return laci_fail_memory(err, port->name);
  lac_status st = laci_engine_port_store(port, buf, content, err);
  if (!st) st = p->on_value(p->on_value_context, value, port, content, err);
  laci_free(content);
  return st;
}

/* Shows observed stored tensors; they are loaded here, since maybe no node reads them. */
static lac_status observe_stored_tensors(const plan *p, lac_error *err) {
  lac_status st = LAC_OK;
  for (int at = 0; at < p->n_observed && !st; at++) {
    int value = p->values[at], s = p->own.graph.values[value].stored;
    laci_buf *buf = NULL;
    if (s < 0) continue;
    const laci_stored *stored = &p->own.graph.stored[s];
    const laci_type type = {stored->dtype, stored->shape};
    st = laci_buf_from_bytes(&type, stored->bytes, stored->size_bytes, &buf, err);
    if (!st) st = observe_value(p, value, buf, err);
    laci_buf_destroy(buf);
  }
  return st;
}

static lac_status observe_outputs(const plan *p, const laci_plain *run, int node, lac_error *err) {
  const laci_node *n = &p->own.graph.nodes[node];
  lac_status st = LAC_OK;
  for (int at = 0; at < n->n_outputs && !st; at++) {
    int value = n->outputs[at];
    const laci_buf *buf = value >= 0 ? laci_plain_value(run, value) : NULL;
    /* the values of a body that was not run do not exist */
    if (buf || (value >= 0 && !n->body)) st = observe_value(p, value, buf, err);
  }
  return st;
}

static lac_status set_input_values(const plan *p, laci_plain *run, const void *const *in,
                                   lac_error *err) {
  lac_status st = LAC_OK;
  for (int at = 0; at < p->own.graph.n_inputs && !st; at++) {
    int value = p->own.graph.inputs[at];
    laci_buf *buf = NULL;
    st = laci_engine_port_load(&p->inputs[at], p->types[value].dtype, in[at], &buf, err);
    if (st) return st;
    laci_plain_set_value(run, value, buf);
    st = observe_value(p, value, buf, err);
  }
  return st;
}

static lac_status run_nodes(const plan *p, laci_plain *run, const laci_engine_watch *watch,
                            lac_error *err) {
  lac_status st = LAC_OK;
  for (int node = 0; node < p->own.graph.n_nodes && !st; node++) {
    if (laci_engine_is_interrupted(watch)) return laci_fail(err, LAC_INTERRUPTED, "interrupted");
    double begin = laci_engine_begin_step(watch, (size_t)node);
    st = laci_plain_step(run, node, err);
    if (!st && p->observed_at) st = observe_outputs(p, run, node, err);
    if (!st) st = laci_engine_end_step(watch, (size_t)node, begin, err);
  }
  return st;
}

static lac_status copy_outputs(const plan *p, const laci_plain *run, void *const *out,
                               lac_error *err) {
  lac_status st = LAC_OK;
  for (int at = 0; at < p->own.graph.n_outputs && !st; at++) {
    const laci_buf *buf = laci_plain_value(run, p->own.graph.outputs[at]);
    st = laci_engine_port_store(&p->outputs[at], buf, out[at], err);
  }
  return st;
}

static lac_status run_engine(void *self, const void *const *in, void *const *out,
                             const laci_engine_watch *watch, lac_error *err) {
  const plan *p = self;
  laci_plain *walk = NULL;
  lac_status st = laci_plain_create(&p->own.graph, NULL, NULL, p->pool, &walk, err);
  if (!st) st = observe_stored_tensors(p, err);
  if (!st) st = set_input_values(p, walk, in, err);
  if (!st) st = run_nodes(p, walk, watch, err);
  if (!st) st = copy_outputs(p, walk, out, err);
  laci_plain_destroy(walk);
  return st;
}

/* ---- Running node by node, for laci_stepper ---- */

static lac_status create_stepper(const laci_graph *graph, const laci_stepper_options *options,
                                 void **self, lac_error *err) {
  laci_plain *walk = NULL;
  lac_status st =
      laci_plain_create(graph, options->load, options->load_context, options->pool, &walk, err);
  if (!st) laci_plain_set_budget(walk, options->budget);
  if (!st) laci_plain_set_max_iterations(walk, options->iterations);
  if (!st) laci_plain_set_single_precision(walk, options->single);
  if (!st) laci_plain_set_unrounded(walk, options->unrounded);
  *self = walk;
  return st;
}

static void destroy_stepper(void *self) { laci_plain_destroy(self); }
static void set_stepper_value(void *self, int value, laci_buf *take) {
  laci_plain_set_value(self, value, take);
}

static lac_status step_node(void *self, int node, lac_error *err) {
  return laci_plain_step(self, node, err);
}

static void skip_node(void *self, int node) { laci_plain_skip(self, node); }

static const laci_buf *get_stepper_value(const void *self, int value) {
  return laci_plain_value(self, value);
}

static const laci_stepper_functions stepping = {.create = create_stepper,
                                                .destroy = destroy_stepper,
                                                .set = set_stepper_value,
                                                .step = step_node,
                                                .skip = skip_node,
                                                .value = get_stepper_value,
                                                .plan = laci_plain_plan_memory};

const laci_engine_row laci_engine_plain = {.name = LACI_ENGINE_EXACT,
                                           .supports = supports_node,
                                           .create = create_engine,
                                           .destroy = destroy_engine,
                                           .inputs = get_inputs,
                                           .outputs = get_outputs,
                                           .run = run_engine,
                                           .threads = thread_count,
                                           .planned = planned_memory,
                                           .text = plan_text,
                                           .step_count = step_count,
                                           .step_info = describe_step,
                                           .nodes = list_nodes,
                                           .stepping = &stepping};
