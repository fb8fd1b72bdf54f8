/* SPDX-License-Identifier: Apache-2.0
 * The fast engine as a row of the list of engines. */
#include "engine/row.h"

#include "engine/cpu/plan/plan.h"
#include "engine/cpu/microbatch/microbatch.h"
#include "engine/cpu/native/tune.h"

/* Nodes without a fast kernel are run by the operator's own evaluation. */
static bool supports_node(const laci_engine_row *row, const laci_graph *graph,
                          const laci_node *node, lac_error *why) {
  (void)row;
  (void)graph;
  return !laci_engine_check_has_evaluation(node, why);
}

static laci_engine_dtype computation_dtype(const laci_engine_row *row, lac_dtype dtype) {
  (void)row;
  if (dtype == LAC_DTYPE_F32) return LACI_DTYPE_HERE;
  if (dtype != LAC_DTYPE_BF16) return LACI_DTYPE_NOT;
  return laci_net_can_use_bf16() ? LACI_DTYPE_HERE : LACI_DTYPE_NOT_HERE;
}

static lac_status find_runnable_nodes(const laci_graph *graph, const laci_engine_options *options,
                                      laci_engine_reached *reached, lac_error *err) {
  laci_cpu_plan plan = {.graph = graph,
                        .fetch = options->fetch,
                        .fetch_context = options->fetch_context,
                        .budget = options->budget,
                        .err = err};
  lac_status st = laci_plan_infer_runnable(&plan, options->shapes, options->n_shapes, reached, err);
  laci_plan_clear(&plan);
  return st;
}

static lac_status create_engine(const laci_engine_row *row, const laci_graph *graph,
                                const laci_engine_options *options, void **self, lac_error *err) {
  (void)row;
  laci_microbatches *stages = NULL;
  lac_status st = laci_microbatches_create(graph, options, &laci_stage_usual, &stages, err);
  *self = stages;
  return st;
}

static void destroy_engine(void *self) { laci_microbatches_destroy(self); }

static int get_inputs(const void *self, const laci_engine_port **ports) {
  return laci_microbatches_inputs(self, ports);
}

static int get_outputs(const void *self, const laci_engine_port **ports) {
  return laci_microbatches_outputs(self, ports);
}

static lac_status run_engine(void *self, const void *const *in, void *const *out,
                             const laci_engine_watch *watch, lac_error *err) {
  return laci_microbatches_run(self, in, out, watch, err);
}

static int thread_count(const void *self) { return laci_microbatches_threads(self); }
static laci_engine_memory planned_memory(const void *self) {
  return laci_microbatches_planned_memory(self);
}
static const char *plan_text(const void *self) { return laci_microbatches_plan_text(self); }
static size_t step_count(const void *self) { return laci_microbatches_step_count(self); }

static laci_engine_step describe_step(const void *self, size_t step) {
  return laci_microbatches_step_info(self, step);
}

static size_t find_output_step(const void *self, int port) {
  return laci_microbatches_output_step(self, port);
}

static void list_nodes(const void *self, const laci_graph *graph, laci_engine_node *nodes) {
  laci_microbatches_list_nodes(self, graph, nodes);
}

const laci_engine_row laci_engine_cpu = {.name = LACI_ENGINE_FAST,
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
                                         .output_step = find_output_step,
                                         .measure_costs = laci_cpu_measure_costs,
                                         .knows_costs = laci_cpu_has_own_costs,
                                         .nodes = list_nodes,
                                         .reach = find_runnable_nodes,
                                         .computes_in = computation_dtype};
