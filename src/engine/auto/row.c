/* SPDX-License-Identifier: Apache-2.0
 * The automatic engine as a row of the list of engines: it runs nodes on the fast engine where
 * possible, and the rest of the network on the exact one. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/plural.h"
#include "cpu/pool.h"
#include "engine/auto/choice.h"
#include "engine/stepper.h"
#include "graph/graph.h"

static bool supports_node(const laci_engine_row *row, const laci_graph *graph,
                          const laci_node *node, lac_error *why) {
  (void)row;
  return laci_engine_can_run_node(LACI_ENGINE_FAST, graph, node, NULL) ||
         laci_engine_can_run_node(LACI_ENGINE_EXACT, graph, node, why);
}

static int get_inputs(const void *self, const laci_engine_port **ports) {
  const laci_auto *a = self;
  if (a->whole) return laci_engine_inputs(a->whole, ports);
  *ports = a->inputs;
  return a->graph->n_inputs;
}

static int get_outputs(const void *self, const laci_engine_port **ports) {
  const laci_auto *a = self;
  if (a->whole) return laci_engine_outputs(a->whole, ports);
  *ports = a->outputs;
  return a->graph->n_outputs;
}

static int thread_count(const void *self) {
  const laci_auto *a = self;
  return a->whole ? laci_engine_threads(a->whole) : laci_pool_threads(a->pool);
}

static laci_engine_memory planned_memory(const void *self) {
  const laci_auto *a = self;
  return a->whole ? laci_engine_planned_memory(a->whole) : a->planned;
}

static lac_status measure_costs(char **text, lac_error *err) {
  return laci_engine_measure_costs(LACI_ENGINE_FAST, text, err);
}

static bool has_measured_costs(void) { return laci_engine_has_cost_table(LACI_ENGINE_FAST); }

static laci_engine_dtype computation_dtype(const laci_engine_row *row, lac_dtype dtype) {
  (void)row;
  return laci_engine_find_dtype_support(LACI_ENGINE_FAST, dtype);
}

static laci_engine_exact describe_exact_nodes(const void *self) {
  const laci_auto *a = self;
  return a->whole ? (laci_engine_exact){0} : a->exact;
}

static const laci_buf *get_result(const void *self, int port) {
  const laci_auto *a = self;
  if (a->whole || !a->stepper) return NULL;
  return laci_stepper_value(a->stepper, a->graph->outputs[port]);
}

/* ---- Steps ---- */

static size_t step_count(const void *self) {
  const laci_auto *a = self;
  return a->whole ? laci_engine_step_count(a->whole) : a->n_steps;
}

static int64_t sum_value_bytes(const laci_auto *a, const int *values, int n) {
  int64_t sum = 0;
  for (int at = 0; at < n; at++) {
    int64_t count = values[at] >= 0 ? laci_shape_count(&a->cut.types[values[at]].shape) : 0;
    if (count > 0) sum += count * (int64_t)sizeof(double);
  }
  return sum;
}

static laci_engine_step describe_exact_step(const laci_auto *a, const laci_node *node) {
  const laci_type *types = a->cut.types;
  laci_engine_step step = {.name = node->name[0] ? node->name : NULL,
                           .op = node->type,
                           .what = node->type,
                           .kernel = "exact",
                           .plain = true,
                           .exact = true,
                           .bytes_read = sum_value_bytes(a, node->inputs, node->n_inputs),
                           .bytes_written = sum_value_bytes(a, node->outputs, node->n_outputs)};
  bool product = node->n_inputs > 1 && node->n_outputs > 0 && node->inputs[0] >= 0 &&
                 node->inputs[1] >= 0 && node->outputs[0] >= 0;
  int64_t flops = !product ? 0
                           : laci_engine_node_flops(node, &types[node->inputs[0]].shape,
                                                    &types[node->inputs[1]].shape,
                                                    &types[node->outputs[0]].shape);
  step.flops = flops > 0 ? flops : 0;
  return step;
}

/* Returns the engine among the part and its branches that computes step `at` of the network; NULL:
 * the step is an exact node. *first: the step at which its own, or those of exact nodes, begin. */
static const laci_engine *find_engine_of_step(const laci_auto_part *part, size_t at,
                                              size_t *first) {
  *first = part->first_step;
  for (int b = 0; part->choice && b < 2; b++) {
    const laci_auto_part *branch = &part->choice->branches[b].part;
    if (at < *first + branch->n_steps) return branch->engine;
    *first += branch->n_steps;
  }
  return part->engine;
}

/* Returns exact step `at` of a part: nodes in branches with engines are none. */
static const laci_node *find_exact_node(const laci_auto *a, const laci_auto_part *part, size_t at) {
  size_t n = 0;
  while (!laci_auto_is_exact_step(a, part, part->nodes[n]) || at-- > 0) n++;
  return &a->graph->nodes[part->nodes[n]];
}

static laci_engine_step describe_step(const void *self, size_t at) {
  const laci_auto *a = self;
  if (a->whole) return laci_engine_step_info(a->whole, at);
  const laci_auto_part *part = a->parts;
  size_t first;
  while (at >= part->first_step + part->n_steps) part++;
  const laci_engine *engine = find_engine_of_step(part, at, &first);
  if (engine) return laci_engine_step_info(engine, at - first);
  return describe_exact_step(a, find_exact_node(a, part, at - first));
}

static size_t find_output_step(const void *self, int port) {
  const laci_auto *a = self;
  return a->whole ? laci_engine_output_step(a->whole, port) : a->n_steps;
}

static void list_exact_node(const laci_auto *a, const laci_auto_part *part, int node,
                            const laci_graph *graph, laci_engine_node *nodes) {
  const int at = laci_engine_find_node(graph, &a->graph->nodes[node]);
  if (at < 0 || !laci_auto_is_exact_step(a, part, node)) return;
  nodes[at] = (laci_engine_node){.runner = LACI_RUNNER_EXACT, .reason = a->cut.reasons[node]};
}

static void list_nodes(const void *self, const laci_graph *graph, laci_engine_node *nodes) {
  const laci_auto *a = self;
  if (a->whole) {
    laci_engine_list_nodes(a->whole, graph, nodes);
    return;
  }
  for (int at = 0; at < a->n_parts; at++) {
    const laci_auto_part *part = &a->parts[at];
    if (part->engine) laci_engine_list_nodes(part->engine, graph, nodes);
    for (size_t n = 0; n < part->n_nodes; n++)
      list_exact_node(a, part, part->nodes[n], graph, nodes);
    for (int b = 0; part->choice && b < 2; b++) {
      const laci_engine *engine = part->choice->branches[b].part.engine;
      if (engine) laci_engine_list_nodes(engine, graph, nodes);
    }
  }
}

/* ---- Text ---- */

static size_t name_list_length(int n) { return n > 0 ? (size_t)n : 0; }

/* Writes an If and the plans of its branches, as write_part. */
static size_t write_choice(const laci_auto *a, const laci_auto_choice *choice, char *to,
                           size_t size) {
  static const char *const names[] = {"then", "else"};
  size_t used = 0;
  for (int b = 0; b < 2; b++) {
    const laci_engine *engine = choice->branches[b].part.engine;
    used += laci_engine_format_text(to ? to + used : NULL, to ? size - used : 0,
                                    "%s branch of %s: %s\n%s", names[b],
                                    a->graph->nodes[choice->node].name, engine ? "fast" : "exact",
                                    engine ? laci_engine_plan_text(engine) : "");
  }
  return used;
}

/* Writes the title and the lines that describe a part to `to`, and returns their length; `to` NULL:
 * only returns it. */
static size_t write_part(const laci_auto *a, int at, char *to, size_t size) {
  const laci_auto_part *part = &a->parts[at];
  const char *kind = part->engine ? "fast" : part->choice ? "a choice" : "exact";
  size_t used =
      name_list_length(snprintf(to, size, "part %d of %d: %s, %zu step%s\n", at + 1, a->n_parts,
                                kind, part->n_steps, laci_plural((int64_t)part->n_steps)));
  const char *text = part->engine ? laci_engine_plan_text(part->engine) : "";
  used += name_list_length(snprintf(to ? to + used : NULL, to ? size - used : 0, "%s", text));
  if (part->choice)
    used += write_choice(a, part->choice, to ? to + used : NULL, to ? size - used : 0);
  size_t step = 0;
  for (size_t n = 0; n < part->n_nodes; n++) {
    const laci_node *node = &a->graph->nodes[part->nodes[n]];
    if (!laci_auto_is_exact_step(a, part, part->nodes[n])) continue;
    used += name_list_length(snprintf(to ? to + used : NULL, to ? size - used : 0,
                                      "%4zu  %-28s %s\n", step++, node->type, node->name));
  }
  return used;
}

lac_status laci_auto_write_text(laci_auto *a, lac_error *err) {
  size_t size = 1;
  for (int at = 0; at < a->n_parts; at++) size += write_part(a, at, NULL, 0);
  char *to = a->text = laci_alloc(size, 1);
  if (!to) return laci_fail_memory(err, "the plan's text");
  for (int at = 0; at < a->n_parts; at++) {
    to += write_part(a, at, to, size - (size_t)(to - a->text));
  }
  return LAC_OK;
}

static const char *plan_text(const void *self) {
  const laci_auto *a = self;
  return a->whole ? laci_engine_plan_text(a->whole) : a->text;
}

const laci_engine_row laci_engine_auto = {.name = LACI_ENGINE_AUTO,
                                          .supports = supports_node,
                                          .create = laci_auto_create,
                                          .destroy = laci_auto_destroy,
                                          .inputs = get_inputs,
                                          .outputs = get_outputs,
                                          .run = laci_auto_run,
                                          .threads = thread_count,
                                          .planned = planned_memory,
                                          .text = plan_text,
                                          .step_count = step_count,
                                          .step_info = describe_step,
                                          .output_step = find_output_step,
                                          .measure_costs = measure_costs,
                                          .knows_costs = has_measured_costs,
                                          .computes_in = computation_dtype,
                                          .exact = describe_exact_nodes,
                                          .nodes = list_nodes,
                                          .result = get_result};
