/* SPDX-License-Identifier: Apache-2.0
 * Creates and runs a net: planning, placing buffers, and the walk over the steps.
 *
 * oneDNN uses the threads of an OpenMP runtime, whose number is a setting of the calling thread. It
 * determines how primitives divide their work, so it is set to the same number for planning and for
 * each run, and restored afterwards. */
#include "base/budget.h"
#include "base/memory.h"
#include "engine/cpu/net.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cpu/net_in.h"
#include "engine/cpu/plan/finite.h"
#include "base/error.h"
#include "cpu/denormals.h"
#include "cpu/openmp.h"
#include "engine/row.h"
#include "graph/sizes.h"
#include "jit/isa.h"
#include "engine/cpu/native/native.h"
#include "cpu/pool.h"
#include "engine/cpu/onednn/onednn.h"
#include "tensor/buf.h"

static pthread_once_t started = PTHREAD_ONCE_INIT;

/* ---- Creating ---- */

/* Fills a port, and adds the memory of its buffer to the plan's budget. */
static lac_status describe_port(laci_net *net, int value, laci_engine_port *port, lac_error *err) {
  lac_status st =
      laci_engine_port_init(net->plan.graph, value, &net->plan.values[value].type, port, err);
  if (!st) laci_engine_port_add_to_budget(net->plan.graph, value, port, net->plan.budget);
  return st;
}

static lac_status describe_ports(laci_net *net, lac_error *err) {
  const laci_graph *graph = net->plan.graph;
  net->n_inputs = graph->n_inputs;
  net->n_outputs = graph->n_outputs;
  net->inputs = laci_plan_alloc(&net->plan, (size_t)net->n_inputs, sizeof *net->inputs);
  net->outputs = laci_plan_alloc(&net->plan, (size_t)net->n_outputs, sizeof *net->outputs);
  lac_status st = net->plan.status;
  for (int at = 0; at < net->n_inputs && !st; at++) {
    st = describe_port(net, graph->inputs[at], &net->inputs[at], err);
  }
  for (int at = 0; at < net->n_outputs && !st; at++) {
    st = describe_port(net, graph->outputs[at], &net->outputs[at], err);
  }
  return st ? st : laci_budget_check(net->plan.budget, "the run's inputs and outputs", err);
}

static void create_memory_object(laci_net *net, int tensor) {
  laci_net_tensor *t = &net->tensors[tensor];
  if (t->memory || !t->md || net->plan.status) return;
  laci_place place = net->buffers[t->buffer].place;
  bool later = place == LACI_PLACE_INPUT || place == LACI_PLACE_OUTPUT;
  void *data = later ? NULL : laci_net_tensor_data(net, tensor);
  (void)laci_net_check_status(net, laci_memory_create(net->onednn, t->md, data, &t->memory),
                              "memory object");
}

/** Finds the largest value that a run computes; -1: there is none. */
static int find_largest_value(const laci_net *net) {
  int largest = -1;
  int64_t most = 0;
  for (int v = 0; v < net->plan.graph->n_values; v++) {
    const laci_plan_value *value = &net->plan.values[v];
    int64_t count = laci_shape_count(&value->type.shape);
    if (value->tensor < 0 || value->constant || count <= most) continue;
    largest = v;
    most = count;
  }
  return largest;
}

/** Checks all memory that a run needs against the budget, before the arena is allocated and
 * primitives are created.
 */
static void check_memory_budget(laci_net *net) {
  laci_budget *budget = net->plan.budget;
  if (net->plan.status) return;
  laci_budget_add(budget, net->plan.weight_bytes, "weights");
  int v = laci_budget_allows(budget, net->plan.arena_bytes) ? -1 : find_largest_value(net);
  if (v >= 0) {
    char text[256];
    laci_type type = net->plan.values[v].type;
    bool is_float = laci_dtype_is_float(type.dtype);
    size_t element = !is_float        ? sizeof(int64_t)
                     : net->plan.bf16 ? sizeof(uint16_t)
                                      : sizeof(float);
    if (is_float) type.dtype = net->plan.bf16 ? LAC_DTYPE_BF16 : LAC_DTYPE_F32;
    laci_value_describe(net->plan.graph, v, &type, text, sizeof text);
    uint64_t bytes = laci_count_bytes_saturated(laci_shape_count(&type.shape), element);
    laci_budget_add(budget, bytes, "%s", text);
    laci_budget_subtract(budget, bytes); /* its bytes are counted as part of the arena */
  }
  laci_budget_add_unnamed(budget, net->plan.arena_bytes);
  net->plan.status = laci_budget_check(budget, "the run", net->plan.err);
}

/** Creates a step's primitive, after the memory of its operands has been allocated. */
static void create_step_primitive(laci_net *net, laci_net_step *step) {
  lac_error why = {0}, *err = net->plan.err;
  if (!step->primitive || !laci_net_has_memory(net)) return;
  net->plan.err = &why;
  lac_status st = laci_primitive_create(step->primitive);
  if (!laci_net_check_status(net, st, "primitive")) {
    (void)laci_fail(err, net->plan.status, "%s (%s): %s", step->node ? step->node->name : "reorder",
                    step->what, why.text);
  }
  net->plan.err = err;
}

/** Sets the primitive's arguments; memory objects are shared by all steps that use a tensor. */
static void bind_memory_to_primitive(laci_net *net, laci_net_step *step) {
  laci_memory **memory = laci_alloc((size_t)step->n_args, sizeof *memory);
  if (!memory) laci_plan_fail_no_memory(&net->plan);
  for (int at = 0; at < step->n_args && !net->plan.status; at++) {
    create_memory_object(net, step->tensors[at]);
    memory[at] = net->tensors[step->tensors[at]].memory;
  }
  if (!net->plan.status &&
      laci_primitive_bind(step->primitive, step->n_args, step->codes, memory)) {
    laci_plan_fail_no_memory(&net->plan);
  }
  laci_free((void *)memory);
}

/** Allocates the arena, creates the primitives and binds them to it. */
static void allocate_and_bind_memory(laci_net *net) {
  if (net->plan.status || net->outline) return;
  net->arena = laci_alloc(net->plan.arena_bytes, 1);
  if (!net->arena) {
    laci_plan_fail(&net->plan, LAC_NO_MEMORY, "not enough memory for an arena of %zu bytes",
                   net->plan.arena_bytes);
    return;
  }
  laci_pages_use_huge(net->arena, net->plan.arena_bytes);
  for (size_t s = 0; s < net->n_steps; s++) {
    laci_net_step *step = &net->steps[s];
    create_step_primitive(net, step);
    if (step->primitive && !net->plan.status) bind_memory_to_primitive(net, step);
  }
}

static lac_status check_openmp_team(const laci_net *net, lac_error *err) {
  if (laci_openmp_can_use_threads(net->n_threads)) return LAC_OK;
  return laci_fail(err, LAC_UNSUPPORTED,
                   "an engine of %d threads in a process that was forked after engines had run: "
                   "its threads were not forked; fork before the first run, or take 1 thread",
                   net->n_threads);
}

/** Checks that code can be generated at run time, which oneDNN's kernels need on every
 * processor. */
static lac_status check_code_generation(lac_error *err) {
  lac_error why = {0};
  lac_status st = laci_jit_check_allowed(&why);
  if (st != LAC_UNSUPPORTED) return st ? laci_fail(err, st, "%s", why.text) : LAC_OK;
  return laci_fail(err, st,
                   "%s (forbidden by seccomp, SELinux or systemd?); the engine 'plain' "
                   "needs none",
                   why.text);
}

/** Predicts the time of each step. Has to be called before the elements of constants are freed. */
static void predict_step_times(laci_net *net) {
  for (size_t at = 0; at < net->n_steps && !net->plan.status; at++) {
    const laci_engine_step info = laci_net_step_info(net, at);
    const double cost = laci_native_predict_cost(net, &net->steps[at], &info);
    net->steps[at].predicted_seconds = laci_native_seconds_of_cost(net, cost);
  }
}

static lac_status plan_and_lower_network(laci_net *net, const laci_engine_options *options,
                                         lac_error *err) {
  lac_status st = LAC_OK;
  if (!net->pool)
    st = laci_pool_create_on(options->parallel, options->threads, &net->own_pool, err);
  if (st) return st;
  if (!net->pool) net->pool = net->own_pool;
  st = laci_native_load_costs(net, err);
  if (st) return st;
  net->n_threads = laci_pool_threads(net->pool);
  st = check_openmp_team(net, err);
  if (!st) st = check_code_generation(err);
  if (st) return st;
  net->n_threads = laci_openmp_available_threads(net->n_threads);
  int before = laci_openmp_set_threads(net->n_threads);
  st = laci_memory_is_available(LACI_NET_RESERVE) ? laci_onednn_create(&net->onednn, err)
                                                  : laci_fail_memory(err, "oneDNN");
  if (!st) st = laci_plan_infer_types(&net->plan, options->shapes, options->n_shapes, err);
  if (!st) st = describe_ports(net, err);
  if (!st) st = laci_net_note_observed_values(net, options->observer, err);
  if (!st) st = laci_plan_merge_pads(&net->plan, err);
  if (!st) st = laci_plan_fuse_nodes(&net->plan, err);
  if (!st) st = laci_plan_make_schedule(&net->plan, options->recompute, err);
  if (!st && options->finite == LACI_FINITE_SURE && net->use->which != LACI_NATIVE_USE_LISTED) {
    laci_plan_find_values_to_check(&net->plan);
    st = net->plan.status;
  }
  if (!st && net->use->which == LACI_NATIVE_USE_LISTED) {
    laci_native_choose_layers(net);
    st = net->plan.status;
  } else if (!st) {
    laci_net_lower_graph(net);
    predict_step_times(net);
    laci_native_seal_code(net);
    laci_plan_free_constants(&net->plan);
    laci_net_free_unused_weights(net);
    laci_plan_place_buffers(&net->plan, net->buffers, net->n_buffers);
    check_memory_budget(net);
    allocate_and_bind_memory(net);
    laci_net_write_text(net);
    st = net->plan.status;
  }
  (void)laci_openmp_set_threads(before);
  return st;
}

bool laci_net_can_use_bf16(void) {
  (void)pthread_once(&started, laci_onednn_limit_isa);
  return laci_onednn_has_bf16();
}

lac_status laci_net_create(const laci_graph *graph, const laci_engine_options *options,
                           laci_native_use use, const laci_net_place *place, laci_net **net,
                           lac_error *err) {
  lac_error unseen;
  *net = NULL;
  if (!laci_net_can_use_bf16() && options->bf16) {
    return laci_fail(err, LAC_UNSUPPORTED, "this processor has no bf16 instructions (AVX512-BF16)");
  }
  laci_net *made = laci_alloc(1, sizeof *made);
  if (!made) return laci_fail_memory(err, "the engine");
  laci_budget budget = options->budget ? *options->budget : laci_budget_with_limit(UINT64_MAX);
  made->plan = (laci_cpu_plan){
      .graph = graph,
      .fetch = options->fetch,
      .fetch_context = options->fetch_context,
      .ask = laci_lower_find_fusible,
      .lowering = made,
      .bf16 = options->bf16,
      .careful = options->finite == LACI_FINITE_CAREFUL,
      .budget = &budget,
      .err = err ? err : &unseen,
  };
  if (place) {
    made->pool = place->pool;
    made->reads_blocks = place->reads_blocks;
    made->writes_blocks = place->writes_blocks;
  }
  made->early_outputs = options->early_outputs;
  made->outline = options->extent != LACI_EXTENT_WHOLE;
  made->use = &use;
  made->timings = options->timings;
  made->weights = options->weights;
  made->n_weights = options->n_weights;
  lac_status st = plan_and_lower_network(made, options, made->plan.err);
  made->plan.err = NULL;
  made->plan.budget = NULL;
  made->use = NULL;
  made->timings = NULL;
  made->weights = NULL;
  made->n_weights = 0;
  if (st) laci_net_destroy(made);
  else *net = made;
  if (!st && options->budget) *options->budget = budget;
  return st;
}

void laci_net_destroy(laci_net *net) {
  if (!net) return;
  for (size_t at = 0; at < net->n_steps; at++) { laci_primitive_destroy(net->steps[at].primitive); }
  for (size_t at = 0; at < net->n_tensors; at++) {
    laci_memory_destroy(net->tensors[at].memory);
    laci_layout_destroy(net->tensors[at].md);
  }
  for (size_t at = 0; at < net->n_buffers; at++) {
    if (net->buffers[at].owned) laci_free(net->buffers[at].data);
  }
  laci_native_destroy_layers(net);
  laci_onednn_destroy(net->onednn);
  laci_pool_destroy(net->own_pool);
  laci_free(net->tensors);
  laci_free(net->buffers);
  laci_free(net->steps);
  laci_free(net->arena);
  laci_plan_clear(&net->plan);
  laci_free(net);
}

/* ---- Reports ---- */

int laci_net_inputs(const laci_net *net, const laci_engine_port **ports) {
  *ports = net->inputs;
  return net->n_inputs;
}

int laci_net_outputs(const laci_net *net, const laci_engine_port **ports) {
  *ports = net->outputs;
  return net->n_outputs;
}

laci_engine_memory laci_net_planned_memory(const laci_net *net) {
  return (laci_engine_memory){.arena_bytes = net->plan.arena_bytes,
                              .weight_bytes = net->plan.weight_bytes,
                              .n_recomputed = net->plan.n_recomputed};
}

const char *laci_net_plan_text(const laci_net *net) { return net->text; }

const char *laci_net_node_needing_careful_plan(const laci_net *net) { return net->plan.careless; }

const char *laci_net_suspect_value(const laci_net *net) {
  return net->suspect ? net->plan.graph->values[net->suspect->value].name : NULL;
}

/* ---- Running ---- */

static void set_port_buffers(laci_net *net, const void *const *inputs, void *const *outputs) {
  for (size_t at = 0; at < net->n_buffers; at++) {
    laci_buffer *buffer = &net->buffers[at];
    if (buffer->place == LACI_PLACE_INPUT) buffer->data = (void *)(uintptr_t)inputs[buffer->port];
    if (buffer->place == LACI_PLACE_OUTPUT) buffer->data = outputs[buffer->port];
  }
}

static lac_status set_memory_addresses(laci_net *net) {
  lac_status st = LAC_OK;
  for (size_t at = 0; at < net->n_tensors && !st; at++) {
    const laci_net_tensor *t = &net->tensors[at];
    laci_place place = net->buffers[t->buffer].place;
    bool callers = place == LACI_PLACE_INPUT || place == LACI_PLACE_OUTPUT;
    if (t->memory && callers) {
      st = laci_memory_set_data(t->memory, net->buffers[t->buffer].data);
    }
  }
  return st;
}

static lac_status run_step(laci_net *net, laci_net_step *step, lac_error *err) {
  if (step->code) return step->code(net, step, err);
  int answer;
  lac_status st = laci_primitive_run(step->primitive, net->onednn, &answer);
  if (!st) return LAC_OK;
  return laci_fail(err, st == LAC_NO_MEMORY ? LAC_NO_MEMORY : LAC_INTERNAL,
                   "%s (%s): oneDNN's status %d", step->node ? step->node->name : "reorder",
                   step->what, answer);
}

static lac_status run_all_steps(laci_net *net, const laci_engine_watch *watch, lac_error *err) {
  lac_status st = LAC_OK;
  for (size_t at = 0; at < net->n_steps && !st && !net->suspect; at++) {
    if (laci_engine_is_interrupted(watch)) return laci_fail(err, LAC_INTERRUPTED, "interrupted");
    double begin = laci_engine_begin_step(watch, at);
    st = run_step(net, &net->steps[at], err);
    if (!st) st = laci_engine_end_step(watch, at, begin, err);
  }
  return st;
}

/** Sets a thread to flush denormals; done for all threads of a run, those of oneDNN's OpenMP
 * included. After the run each thread gets its former mode back. Runs may be nested. */
static void flush_denormals_of_thread(void *context) {
  static _Thread_local int n_inside;
  static _Thread_local bool before;
  const bool begins = *(const bool *)context;
  if (begins && n_inside++ == 0) before = laci_denormals_set_flushed(true);
  if (!begins && --n_inside == 0) (void)laci_denormals_set_flushed(before);
}

static void set_denormal_flushing(const laci_net *net, bool begins) {
  if (net->n_threads > 1 && laci_openmp_has_team()) {
    laci_openmp_run(net->n_threads, flush_denormals_of_thread, &begins);
  } else {
    flush_denormals_of_thread(&begins);
  }
}

lac_status laci_net_run(laci_net *net, const void *const *inputs, void *const *outputs,
                        const laci_engine_watch *watch, lac_error *err) {
  lac_status st = check_openmp_team(net, err);
  if (st) return st;
  if (laci_openmp_available_threads(net->n_threads) < net->n_threads) {
    return laci_fail(err, LAC_NO_MEMORY,
                     "the system does not let this thread have the %d threads that the plan is for",
                     net->n_threads);
  }
  if (!net->has_run && !laci_memory_is_available(LACI_NET_RESERVE))
    return laci_fail_memory(err, "a run");
  net->has_run = true;
  set_port_buffers(net, inputs, outputs);
  if (set_memory_addresses(net))
    return laci_fail(err, LAC_INTERNAL, "oneDNN refuses the caller's buffers");
  int before = laci_openmp_set_threads(net->n_threads);
  laci_net_check_inputs(net, inputs);
  set_denormal_flushing(net, true);
  net->watch = watch;
  st = run_all_steps(net, watch, err);
  net->watch = NULL;
  if (!laci_onednn_wait_for_all(net->onednn) && !st) {
    st = laci_fail(err, LAC_INTERNAL, "oneDNN did not finish");
  }
  set_denormal_flushing(net, false);
  (void)laci_openmp_set_threads(before);
  return st;
}
