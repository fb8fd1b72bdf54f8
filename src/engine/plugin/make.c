/* SPDX-License-Identifier: Apache-2.0
 * Plans a network on a plug-in's engine: asks what the engine does with each node, makes the
 * buffers of a run, and lets the engine plan. */
#include <stdio.h>

#include "base/budget.h"
#include "base/error.h"
#include "cpu/pool.h"
#include "engine/plugin/plugin_in.h"
#include "graph/op.h"
#include "graph/sizes.h"
#include "sparse/pack.h"

/* ---- Answers of a plug-in ---- */

lac_status laci_plugin_check_status(const laci_plugin_row *row, const char *doing,
                                    lac_status status, const lac_error *given, lac_error *err) {
  if (status == LAC_OK) return LAC_OK;
  const bool is_known = (unsigned)status < LAC_STATUS_COUNT;
  const char *text = given->text[0] ? given->text : "no reason is given";
  return laci_fail(err, is_known ? status : LAC_BAD_FILE, "the engine %s failed %s: %.*s%s",
                   row->name, doing, (int)sizeof given->text - 1, text,
                   is_known ? "" : " (its status is none)");
}

lac_engine_answer laci_plugin_ask_about_node(const laci_plugin_row *row,
                                             const laci_plugin_view *view, int node,
                                             lac_error *why) {
  lac_error given = {0};
  const lac_graph_node *about = view->graph.nodes[node];
  lac_engine_answer answer = row->engine.supports(row->engine.context, &view->graph, node, &given);
  given.text[sizeof given.text - 1] = 0;
  if (answer == LAC_ENGINE_COMPUTES) return answer;
  if (answer != LAC_ENGINE_EVALUATES && answer != LAC_ENGINE_REFUSES) {
    (void)laci_fail(why, LAC_BAD_FILE, "%s: the engine %s answers %d, which is no answer",
                    about->name, row->name, (int)answer);
    return LAC_ENGINE_REFUSES;
  }
  (void)laci_fail(why, LAC_UNSUPPORTED, "%s: the engine %s %s operator %s%s%s", about->name,
                  row->name, answer == LAC_ENGINE_REFUSES ? "cannot run" : "has no code for",
                  about->type, given.text[0] ? ": " : "", given.text);
  return answer;
}

/* ---- Nodes ---- */

/* Checks that a value is of floats or integers and has a known shape, as all values of a run
 * must. */
static lac_status check_value_type(const laci_plugin_plan *p, const laci_node *node, int value,
                                   lac_error *err) {
  laci_engine_port port;
  if (value < 0) return LAC_OK;
  lac_status st = laci_engine_port_init(&p->own.graph, value, &p->types[value], &port, err);
  return st ? laci_fail_with_prefix(err, st, "%s", node->name) : LAC_OK;
}

static lac_status ask_about_node(laci_plugin_plan *p, int at, lac_error *err) {
  const laci_node *node = &p->own.graph.nodes[at];
  lac_error why = {0};
  if (laci_node_control_flow_role(node)) return laci_engine_check_has_evaluation(node, err);
  lac_engine_answer answer = laci_plugin_ask_about_node(p->row, &p->view, at, &why);
  if (answer == LAC_ENGINE_REFUSES) return laci_fail(err, why.status, "%s", why.text);
  lac_status st = LAC_OK;
  if (answer == LAC_ENGINE_EVALUATES) {
    st = laci_engine_check_has_evaluation(node, err);
    p->reasons[at] = laci_arena_text(&p->view.arena, why.text);
    if (!p->reasons[at]) return laci_fail_memory(err, "the engine");
    if (p->n_evaluated++ == 0) p->reason = p->reasons[at];
  }
  for (int k = 0; k < node->n_inputs && !st; k++)
    st = check_value_type(p, node, node->inputs[k], err);
  for (int k = 0; k < node->n_outputs && !st; k++)
    st = check_value_type(p, node, node->outputs[k], err);
  return st;
}

static lac_status ask_about_all_nodes(laci_plugin_plan *p, lac_error *err) {
  lac_status st = LAC_OK;
  p->reasons = laci_alloc((size_t)p->own.graph.n_nodes, sizeof *p->reasons);
  if (!p->reasons) return laci_fail_memory(err, "the engine");
  for (int n = 0; n < p->own.graph.n_nodes && !st; n++) st = ask_about_node(p, n, err);
  return st;
}

static void set_masks_and_patterns_of_view(laci_plugin_plan *p,
                                           const laci_engine_options *options) {
  for (int at = 0; at < options->n_weights; at++) {
    const laci_engine_weight *weight = &options->weights[at];
    lac_graph_value *to = p->view.values[weight->value];
    to->mask = weight->mask;
    if (!weight->packing) continue;
    to->pattern_n = weight->packing->pattern.n;
    to->pattern_m = weight->packing->pattern.m;
    to->pattern_columns = weight->packing->run;
    to->pattern_inner = weight->packing->inner;
  }
}

/* ---- Ports ---- */

static lac_status describe_ports(laci_plugin_plan *p, const int *values, int n,
                                 laci_engine_port **ports, lac_error *err) {
  lac_status st = LAC_OK;
  *ports = laci_alloc((size_t)n, sizeof **ports);
  if (!*ports) return laci_fail_memory(err, "the engine's ports");
  for (int at = 0; at < n && !st; at++) {
    st =
        laci_engine_port_init(&p->own.graph, values[at], &p->types[values[at]], &(*ports)[at], err);
    if (!st) {
      laci_engine_port_add_to_budget(&p->own.graph, values[at], &(*ports)[at], p->budget);
    }
  }
  return st;
}

static lac_status allocate_arrays(laci_plugin_plan *p, int n_observed, lac_error *err) {
  const laci_graph *graph = &p->own.graph;
  size_t n_in = (size_t)graph->n_inputs, n_out = (size_t)graph->n_outputs;
  size_t n_results = n_out + (size_t)n_observed;
  p->results_of = laci_alloc(n_out, sizeof *p->results_of);
  p->inputs = laci_alloc(n_in, sizeof *p->inputs);
  p->results = laci_alloc(n_results, sizeof *p->results);
  p->result_values = laci_alloc(n_results, sizeof *p->result_values);
  p->in = laci_alloc(n_in, sizeof *p->in);
  p->out = laci_alloc(n_results, sizeof *p->out);
  p->seen = laci_alloc((size_t)n_observed, sizeof *p->seen);
  p->seen_at = laci_alloc((size_t)graph->n_values, sizeof *p->seen_at);
  p->shown = laci_alloc((size_t)n_observed, sizeof *p->shown);
  bool made = p->results_of && p->inputs && p->results && p->result_values && p->in && p->out &&
              p->seen && p->seen_at && p->shown;
  return made ? LAC_OK : laci_fail_memory(err, "the engine's ports");
}

static int find_result(const laci_plugin_plan *p, int value) {
  for (int at = 0; at < p->n_results; at++) {
    if (p->results[at].value == value) return at;
  }
  return -1;
}

static int add_result(laci_plugin_plan *p, int value, int at, const laci_engine_port *port) {
  p->results[p->n_results] = (laci_plugin_buffer){.port = *port, .value = value, .at = at};
  p->result_values[p->n_results] = value;
  return p->n_results++;
}

static bool is_computed_by_node(const laci_graph *graph, int value) {
  return graph->values[value].producer >= 0;
}

static void list_port_buffers(laci_plugin_plan *p) {
  const laci_graph *graph = &p->own.graph;
  for (int at = 0; at < graph->n_inputs; at++) {
    p->inputs[at] =
        (laci_plugin_buffer){.port = p->input_ports[at], .value = graph->inputs[at], .at = at};
  }
  for (int at = 0; at < graph->n_outputs; at++) {
    int value = graph->outputs[at], known = find_result(p, value);
    if (!is_computed_by_node(graph, value)) known = -1;
    else if (known < 0) known = add_result(p, value, at, &p->output_ports[at]);
    p->results_of[at] = known;
  }
}

static lac_status list_observed(laci_plugin_plan *p, const laci_engine_observer *observer,
                                lac_error *err) {
  const laci_graph *graph = &p->own.graph;
  lac_status st = LAC_OK;
  for (int v = 0; v < graph->n_values; v++) p->seen_at[v] = -1;
  for (int at = 0; observer && at < observer->n_values && !st; at++) {
    int value = observer->values[at];
    laci_plugin_seen *seen = &p->seen[p->n_seen];
    seen->value = value;
    st = laci_engine_port_init(graph, value, &p->types[value], &seen->port, err);
    p->seen_at[value] = p->n_seen++;
    if (st || !is_computed_by_node(graph, value)) continue;
    if (p->row->engine.observes) p->shown[p->request.n_observed++] = value;
    else if (find_result(p, value) < 0) (void)add_result(p, value, -1, &seen->port);
  }
  if (observer) {
    p->on_value = observer->on_value;
    p->on_value_context = observer->context;
  }
  return st;
}

static lac_status plan_ports(laci_plugin_plan *p, const laci_engine_options *options,
                             lac_error *err) {
  const laci_graph *graph = &p->own.graph;
  const laci_engine_observer *observer = options->observer;
  lac_status st = laci_engine_observer_check(graph, observer, err);
  if (!st) st = describe_ports(p, graph->inputs, graph->n_inputs, &p->input_ports, err);
  if (!st) st = describe_ports(p, graph->outputs, graph->n_outputs, &p->output_ports, err);
  if (!st) st = laci_budget_check(p->budget, "the run's inputs and outputs", err);
  if (!st) st = allocate_arrays(p, observer ? observer->n_values : 0, err);
  if (st) return st;
  list_port_buffers(p);
  st = list_observed(p, observer, err);
  p->view.graph.n_outputs = p->n_results;
  p->view.graph.outputs = p->result_values;
  return st;
}

/* ---- Buffers ---- */

static lac_status allocate_on_device(laci_plugin_plan *p, laci_plugin_buffer *buffer,
                                     lac_error *err) {
  const lac_engine_plugin *engine = &p->row->engine;
  if (!engine->device) return LAC_OK;
  size_t bytes = buffer->port.size_bytes ? buffer->port.size_bytes : 1;
  buffer->device = engine->device->allocate(engine->context, bytes);
  p->device_bytes += bytes;
  if (buffer->device) return LAC_OK;
  return laci_fail(err, LAC_NO_MEMORY, "%s: %s has no %zu bytes", buffer->port.name,
                   engine->device->name, bytes);
}

static lac_status allocate_on_host(laci_plugin_plan *p, size_t bytes, void **memory,
                                   lac_error *err) {
  p->memory.arena_bytes += bytes;
  laci_budget_add(p->budget, bytes, "values that engines outside compute");
  lac_status st = laci_budget_check(p->budget, "the run", err);
  if (st) return st;
  *memory = laci_alloc(bytes, 1);
  return *memory ? LAC_OK : laci_fail_memory(err, "the engine's values");
}

/* Makes the buffers of a run. An engine may write results before it has read all inputs, so the
 * caller's buffers are used only if they do not overlap. */
static lac_status make_buffers(laci_plugin_plan *p, bool early_outputs, lac_error *err) {
  const bool on_device = p->row->engine.device != NULL;
  size_t largest = 0;
  lac_status st = LAC_OK;
  for (int at = 0; at < p->own.graph.n_inputs && !st; at++) {
    st = allocate_on_device(p, &p->inputs[at], err);
  }
  for (int at = 0; at < p->n_results && !st; at++) {
    laci_plugin_buffer *result = &p->results[at];
    st = allocate_on_device(p, result, err);
    bool own = result->at < 0 || (!on_device && !early_outputs);
    if (!st && own) st = allocate_on_host(p, result->port.size_bytes, &result->host, err);
  }
  for (int at = 0; at < p->n_seen; at++) {
    size_t bytes = p->seen[at].port.size_bytes;
    if (bytes > largest) largest = bytes;
  }
  if (!st && largest > 0) st = allocate_on_host(p, largest, &p->scratch, err);
  return st;
}

/* ---- A plan ---- */

static lac_status check_dtype(const laci_plugin_row *row, lac_dtype dtype, lac_error *err) {
  char known[256] = "";
  size_t used = 0;
  for (int at = 0; at < row->engine.n_dtypes; at++) {
    if (row->engine.dtypes[at] == dtype) return LAC_OK;
    int n = snprintf(known + used, sizeof known - used, "%s%s", at ? ", " : "",
                     lac_dtype_name(row->engine.dtypes[at]));
    if (n > 0 && used + (size_t)n < sizeof known) used += (size_t)n;
  }
  return laci_fail(err, LAC_UNSUPPORTED, "the engine %s does not compute in %s, but in %s",
                   row->name, lac_dtype_name(dtype), known);
}

static lac_status create_plugin_object(laci_plugin_plan *p, const laci_engine_options *options,
                                       lac_error *err) {
  const lac_engine_plugin *engine = &p->row->engine;
  lac_error given = {0};
  laci_plugin_host_init(p);
  p->request.size = sizeof p->request;
  p->request.threads = laci_pool_threads(p->pool);
  p->request.dense_only = options->dense_only;
  p->request.is_training = options->finite == LACI_FINITE_ASSUMED;
  p->request.observed = p->shown;
  p->request.host = &p->host;
  lac_status st = engine->create(engine->context, &p->view.graph, &p->request, &p->self, &given);
  if (st) p->self = NULL;
  given.text[sizeof given.text - 1] = 0;
  st = laci_plugin_check_status(p->row, "to plan the network", st, &given, err);
  if (st || p->self) return st;
  return laci_fail(err, LAC_BAD_FILE, "the engine %s planned the network and returned no object",
                   p->row->name);
}

static lac_status make_plan(laci_plugin_plan *p, const laci_graph *graph,
                            const laci_engine_options *options, lac_error *err) {
  p->request.dtype = options->bf16 ? LAC_DTYPE_BF16 : LAC_DTYPE_F32;
  lac_status st = check_dtype(p->row, p->request.dtype, err);
  if (!st) st = laci_engine_graph_init(&p->own, graph, options, NULL, p->budget, err);
  if (!st)
    st = laci_graph_infer_types(&p->own.graph, options->shapes, options->n_shapes, &p->types, err);
  if (!st) st = laci_engine_check_inputs(&p->own.graph, p->types, err);
  if (!st) st = laci_plugin_view_init(&p->view, &p->own.graph, p->types, err);
  if (st) return st;
  set_masks_and_patterns_of_view(p, options);
  st = ask_about_all_nodes(p, err);
  if (!st) st = plan_ports(p, options, err);
  if (!st && options->extent == LACI_EXTENT_WHOLE)
    st = make_buffers(p, options->early_outputs, err);
  if (!st) st = laci_pool_create_on(options->parallel, options->threads, &p->pool, err);
  if (!st) st = create_plugin_object(p, options, err);
  return st ? st : laci_plugin_describe(p, err);
}

lac_status laci_plugin_create(const laci_engine_row *row, const laci_graph *graph,
                              const laci_engine_options *options, void **self, lac_error *err) {
  laci_plugin_plan *p = laci_alloc(1, sizeof *p);
  if (!p) return laci_fail_memory(err, "the engine");
  laci_budget budget = options->budget ? *options->budget : laci_budget_with_limit(UINT64_MAX);
  p->row = (const laci_plugin_row *)row;
  p->budget = &budget;
  lac_status st = make_plan(p, graph, options, err);
  p->budget = NULL;
  if (st) laci_plugin_destroy(p);
  else *self = p;
  if (!st && options->budget) *options->budget = budget;
  return st;
}

static void free_buffers(const laci_plugin_plan *p, laci_plugin_buffer *buffers, int n) {
  const lac_engine_plugin *engine = &p->row->engine;
  for (int at = 0; buffers && at < n; at++) {
    laci_free(buffers[at].host);
    if (buffers[at].device) engine->device->release(engine->context, buffers[at].device);
  }
  laci_free(buffers);
}

void laci_plugin_destroy(void *self) {
  laci_plugin_plan *p = self;
  if (!p) return;
  if (p->self) p->row->engine.destroy(p->self);
  free_buffers(p, p->inputs, p->own.graph.n_inputs);
  free_buffers(p, p->results, p->n_results);
  laci_free(p->scratch);
  laci_free(p->input_ports);
  laci_free(p->output_ports);
  laci_free(p->results_of);
  laci_free(p->result_values);
  laci_free((void *)p->in);
  laci_free((void *)p->out);
  laci_free(p->seen);
  laci_free(p->seen_at);
  laci_free(p->shown);
  laci_free((void *)p->reasons);
  laci_free(p->steps);
  laci_free(p->text);
  laci_free(p->types);
  laci_pool_destroy(p->pool);
  laci_plugin_view_clear(&p->view);
  laci_engine_graph_clear(&p->own);
  laci_free(p);
}
