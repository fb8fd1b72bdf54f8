/* SPDX-License-Identifier: Apache-2.0
 * The functions of lacuna/engine.h, over the engines of engine/engine.h. */
#include "lacuna/engine.h"

#include <string.h>

#include "api/model/model_in.h"
#include "api/model/structs.h"
#include "api/run/infer.h"
#include "api/run/request.h"
#include "api/run/tuning.h"
#include "base/budget.h"
#include "base/memory.h"
#include "engine/engine.h"
#include "base/error.h"
#include "base/log.h"
#include "base/plural.h"
#include "graph/graph.h"
#include "tensor/buf.h"

struct lac_engine {
  laci_engine *engine;
  int n_inputs, n_outputs;
  lac_engine_port *inputs, *outputs;
  laci_request request; /* the network that the engine borrows, and the type of the computation */
  lac_context *context; /* context of the call that created the engine, and of all its runs; NULL:
                           the process's */
  bool has_run;
  void **results; /* [n_outputs] elements of open outputs that lac_engine_result returned; NULL: not
                     requested since the last run */
};

const char *laci_engine_name_or_default(const char *name) { return name ? name : LACI_ENGINE_AUTO; }

lac_dtype laci_dtype_find_supported(const char *engine, lac_dtype wanted) {
  const bool lacks = laci_engine_find_dtype_support(engine, wanted) == LACI_DTYPE_NOT_HERE;
  return lacks ? LAC_DTYPE_F32 : wanted;
}

lac_dtype laci_dtype_find_supported_or_warn(const char *engine, lac_dtype wanted) {
  const lac_dtype here = laci_dtype_find_supported(engine, wanted);
  if (here != wanted) {
    laci_log(LAC_LOG_WARNING,
             "this processor has no bf16 instructions (AVX512-BF16): it computes in f32");
  }
  return here;
}

void laci_log_exact_nodes(const laci_engine_exact *exact, int n_nodes) {
  if (exact->n_nodes == 0) return;
  laci_log(LAC_LOG_INFO, "%d of %d node%s run%s exactly, which is slow: %s", exact->n_nodes,
           n_nodes, laci_plural(n_nodes), exact->n_nodes == 1 ? "s" : "", exact->reason);
}

lac_status lac_engine_load(const char *path, const char **name, lac_error *err) {
  if (name) *name = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"path", path}, {"name", name});
  return st ? st : laci_engine_load(path, name, err);
}

const char *lac_engine_name(int at) {
  enum { MOST = 64 };
  const char *names[MOST];
  int n = laci_engine_names(names, MOST);
  return at >= 0 && at < n && at < MOST ? names[at] : NULL;
}

void lac_engine_options_init(lac_engine_options *options, size_t size) {
  const lac_engine_options usual = {.size = sizeof usual, .run = {.dtype = LAC_DTYPE_F32}};
  laci_struct_set_defaults(&usual, sizeof usual, options, size);
}

static lac_status copy_ports(int n, const laci_engine_port *from, lac_engine_port **ports,
                             lac_error *err) {
  *ports = laci_alloc((size_t)n, sizeof **ports);
  if (!*ports) return laci_fail_memory(err, "the engine's ports");
  for (int at = 0; at < n; at++) {
    lac_engine_port *port = &(*ports)[at];
    *port = (lac_engine_port){.name = from[at].name,
                              .dtype = from[at].type.dtype,
                              .rank = from[at].type.shape.rank,
                              .size_bytes = from[at].size_bytes,
                              .open = from[at].open};
    for (int axis = 0; axis < port->rank; axis++) {
      const int64_t size = from[at].type.shape.dims[axis];
      port->shape[axis] = size < 0 ? -1 : size;
    }
  }
  return LAC_OK;
}

lac_status laci_check_engine_options(const lac_engine_options *options, lac_error *err) {
  lac_status st = laci_check_run_options(&options->run, err);
  return st ? st : laci_check_engine_shapes(options->shapes, options->n_shapes, err);
}

lac_status lac_engine_create(const lac_model *model, const lac_engine_options *options,
                             lac_engine **engine, lac_error *err) {
  lac_engine_options own;
  if (engine) *engine = NULL;
  lac_status st = laci_take_engine_options(options, &own, err);
  if (st) return st;
  laci_budget budget = laci_budget_with_limit(own.run.max_memory);
  lac_context *before = laci_call_enter_context(own.run.context);
  st = laci_model_create_engine(model, &own, NULL, &budget, engine, err);
  if (!st) laci_log_exact_part(*engine);
  laci_call_leave_context(before);
  return st;
}

/* Describes the ports of the engine that was made. */
static lac_status describe_ports(lac_engine *made, lac_error *err) {
  const laci_engine_port *ports;
  made->n_inputs = laci_engine_inputs(made->engine, &ports);
  lac_status st = copy_ports(made->n_inputs, ports, &made->inputs, err);
  if (st) return st;
  made->n_outputs = laci_engine_outputs(made->engine, &ports);
  st = copy_ports(made->n_outputs, ports, &made->outputs, err);
  if (st) return st;
  made->results = laci_alloc((size_t)made->n_outputs, sizeof *made->results);
  return made->results ? LAC_OK : laci_fail_memory(err, "the engine's outputs");
}

lac_status laci_model_create_engine(const lac_model *model, const lac_engine_options *options,
                                    const laci_parallel *parallel, laci_budget *budget,
                                    lac_engine **engine, lac_error *err) {
  if (engine) *engine = NULL;
  const laci_named_pointer given[] = {{"model", model}, {"engine", engine}};
  lac_status st = laci_check_arguments_not_null("lac_engine_create", given, 2, err);
  if (!st) st = laci_check_engine_options(options, err);
  if (st) return st;
  lac_engine *made = laci_alloc(1, sizeof *made);
  if (!made) return laci_fail_memory(err, "the engine");
  made->context = laci_context_entered_by_thread();
  laci_request *request = &made->request;
  st = laci_request_init(request, model, options, err);
  if (!st) {
    request->options.parallel = parallel;
    request->options.budget = budget;
    st = laci_tuned_engine_create(request->view->graph, &request->options, options->run.tuning,
                                  options->run.timings, &made->engine, err);
  }
  if (!st) st = describe_ports(made, err);
  if (st) lac_engine_destroy(made);
  else *engine = made;
  return st;
}

static void free_results(lac_engine *engine) {
  for (int at = 0; engine->results && at < engine->n_outputs; at++) {
    laci_free(engine->results[at]);
    engine->results[at] = NULL;
  }
}

void lac_engine_destroy(lac_engine *engine) {
  if (!engine) return;
  free_results(engine);
  laci_free((void *)engine->results);
  laci_engine_destroy(engine->engine);
  laci_request_clear(&engine->request);
  laci_free(engine->inputs);
  laci_free(engine->outputs);
  laci_free(engine);
}

int lac_engine_inputs(const lac_engine *engine, const lac_engine_port **ports) {
  if (ports) *ports = engine ? engine->inputs : NULL;
  return engine ? engine->n_inputs : 0;
}

int lac_engine_outputs(const lac_engine *engine, const lac_engine_port **ports) {
  if (ports) *ports = engine ? engine->outputs : NULL;
  return engine ? engine->n_outputs : 0;
}

int laci_model_engine_n_sparse(const lac_engine *engine) {
  return laci_engine_sparse_step_count(engine->engine);
}

lac_status laci_model_engine_run(lac_engine *engine, const void *const *inputs,
                                 void *const *outputs, const laci_engine_watch *watch,
                                 lac_error *err) {
  for (int at = 0; at < engine->n_inputs; at++) {
    if (inputs && inputs[at]) continue;
    return laci_fail(err, LAC_BAD_ARGUMENT, "input '%s' is NULL", engine->inputs[at].name);
  }
  for (int at = 0; at < engine->n_outputs; at++) {
    if (outputs && (outputs[at] || engine->outputs[at].open)) continue;
    return laci_fail(err, LAC_BAD_ARGUMENT, "output '%s' is NULL", engine->outputs[at].name);
  }
  free_results(engine);
  engine->has_run = false;
  lac_context *before = laci_call_enter_context(engine->context);
  const lac_status st = laci_engine_run_watched(engine->engine, inputs, outputs, watch, err);
  laci_call_leave_context(before);
  engine->has_run = !st;
  return st;
}

lac_status lac_engine_run(lac_engine *engine, const void *const *inputs, void *const *outputs,
                          lac_error *err) {
  const lac_status st = LACI_CHECK_GIVEN(err, {"engine", engine});
  return st ? st : laci_model_engine_run(engine, inputs, outputs, NULL, err);
}

const laci_engine *laci_model_engine_inner(const lac_engine *engine) { return engine->engine; }

const laci_buf *laci_model_engine_result(const lac_engine *engine, int output) {
  return laci_engine_result(engine->engine, output);
}

void laci_log_exact_part(const lac_engine *engine) {
  const laci_engine_exact exact = laci_engine_describe_exact_nodes(engine->engine);
  laci_log_exact_nodes(&exact, engine->request.view->graph->n_nodes);
}

/* Fills *port with the actual shape of an output of the last run, and engine->results with its
 * elements in the port's type. */
static lac_status convert_result(lac_engine *engine, int output, lac_engine_port *port,
                                 lac_error *err) {
  const laci_buf *buf = laci_engine_result(engine->engine, output);
  if (!buf) return laci_fail(err, LAC_INTERNAL, "output '%s' was not kept", port->name);
  port->dtype = buf->f ? LAC_DTYPE_F32 : LAC_DTYPE_I64;
  port->rank = buf->shape.rank;
  memcpy(port->shape, buf->shape.dims, sizeof port->shape);
  port->size_bytes = (size_t)buf->count * lac_dtype_size(port->dtype);
  void **to = &engine->results[output];
  if (*to) return LAC_OK;
  *to = laci_alloc(port->size_bytes, 1);
  if (!*to) return laci_fail_memory(err, port->name);
  for (int64_t at = 0; at < buf->count; at++) {
    if (buf->f) ((float *)*to)[at] = (float)buf->f[at];
    else ((int64_t *)*to)[at] = buf->i[at];
  }
  return LAC_OK;
}

lac_status lac_engine_result(lac_engine *engine, int output, lac_engine_port *port,
                             const void **values, lac_error *err) {
  lac_status st = LACI_CHECK_GIVEN(err, {"engine", engine}, {"port", port}, {"values", values});
  if (st) return st;
  *values = NULL;
  *port = (lac_engine_port){0};
  if (output < 0 || output >= engine->n_outputs) {
    return laci_fail(err, LAC_NOT_FOUND, "output %d, and there are %d", output, engine->n_outputs);
  }
  if (!engine->has_run) return laci_fail(err, LAC_NOT_FOUND, "there was no run");
  *port = engine->outputs[output];
  if (!port->open) return LAC_OK;
  st = convert_result(engine, output, port, err);
  if (!st) *values = engine->results[output];
  return st;
}

lac_engine_facts laci_model_engine_facts(const lac_engine *engine) {
  const laci_engine_exact exact = laci_engine_describe_exact_nodes(engine->engine);
  return (lac_engine_facts){.size = sizeof(lac_engine_facts),
                            .name = laci_engine_name(engine->engine),
                            .dtype = engine->request.dtype,
                            .n_nodes = engine->request.view->graph->n_nodes,
                            .n_exact = exact.n_nodes,
                            .exact_reason = exact.reason};
}

lac_status lac_engine_about(const lac_engine *engine, lac_engine_facts *facts, lac_error *err) {
  lac_status st = LACI_CHECK_GIVEN(err, {"engine", engine}, {"facts", facts});
  if (!st) st = laci_check_struct_engine_facts(facts, err);
  if (st) return st;
  const lac_engine_facts own = laci_model_engine_facts(engine);
  laci_give_engine_facts(&own, facts);
  return LAC_OK;
}

const char *lac_engine_plan_text(const lac_engine *engine) {
  return engine ? laci_engine_plan_text(engine->engine) : NULL;
}

lac_status lac_engine_planned(const lac_engine *engine, lac_engine_memory *memory, lac_error *err) {
  lac_status st = LACI_CHECK_GIVEN(err, {"engine", engine}, {"memory", memory});
  if (!st) st = laci_check_struct_engine_memory(memory, err);
  if (st) return st;
  const laci_engine_memory planned = laci_engine_planned_memory(engine->engine);
  const lac_engine_memory own = {
      .size = sizeof own, .arena_bytes = planned.arena_bytes, .weight_bytes = planned.weight_bytes};
  laci_give_engine_memory(&own, memory);
  return LAC_OK;
}

void laci_log_plan(const lac_engine *engine) {
  if (!laci_log_is_enabled(LAC_LOG_DEBUG)) return;
  const char *at = lac_engine_plan_text(engine);
  while (*at) {
    size_t n = strcspn(at, "\n");
    laci_log(LAC_LOG_DEBUG, "%.*s", (int)n, at);
    at += n + (at[n] == '\n');
  }
}

void laci_log_memory(const lac_engine *engine, size_t held_bytes) {
  if (!laci_log_is_enabled(LAC_LOG_DEBUG)) return;
  lac_engine_memory planned = LAC_SIZED(lac_engine_memory);
  if (lac_engine_planned(engine, &planned, NULL)) return;
  size_t sum = planned.weight_bytes + planned.arena_bytes + held_bytes, peak = laci_memory_peak();
  laci_log(LAC_LOG_DEBUG,
           "memory: weights %.1f MB + arena %.1f MB + inputs and outputs %.1f MB = %.1f MB planned",
           (double)planned.weight_bytes / 1e6, (double)planned.arena_bytes / 1e6,
           (double)held_bytes / 1e6, (double)sum / 1e6);
  if (peak) laci_log(LAC_LOG_DEBUG, "memory: %.1f MB at most, all in all", (double)peak / 1e6);
}
