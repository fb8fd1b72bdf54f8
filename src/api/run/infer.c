/* SPDX-License-Identifier: Apache-2.0
 * lac_infer: reads arrays from files, runs the network once, and writes arrays to files.
 *
 * Files and engines exchange values as laci_buf, which holds every number exactly. So all engines
 * see the same inputs, and the same code writes all kinds of output. All output files are opened
 * before the run under temporary names, and are renamed after it. Next: infer_files.c,
 * infer_steps.c. */
#include "lacuna/infer.h"

#include <string.h>

#include "api/model/model_in.h"
#include "api/model/structs.h"
#include "api/run/infer.h"
#include "api/run/infer_in.h"
#include "base/budget.h"
#include "base/memory.h"
#include "engine/engine.h"
#include "engine/stepper.h"
#include "base/file.h"
#include "base/error.h"
#include "base/file_set.h"
#include "base/log.h"
#include "graph/graph.h"
#include "lacuna/array.h"
#include "tensor/buf.h"

void lac_infer_options_init(lac_infer_options *options, size_t size) {
  const lac_infer_options usual = {.size = sizeof usual, .run = {.dtype = LAC_DTYPE_F32}};
  laci_struct_set_defaults(&usual, sizeof usual, options, size);
}

static int64_t find_batch_size(const laci_inference *run) {
  const laci_shape *first = run->graph->n_inputs > 0 ? &run->inputs[0]->shape : NULL;
  return first && first->rank > 0 ? first->dims[0] : 1;
}

/* Do the options name an engine that runs node by node? Such an engine can run networks whose sizes
 * depend on data, and returns doubles. */
static bool is_stepping_engine_named(const lac_infer_options *options) {
  const char *engine = options->run.engine;
  return engine && laci_engine_has_stepper(engine);
}

/* Checks the options, and sets the type that the run computes in. */
static lac_status resolve_options(laci_inference *run, lac_error *err) {
  const lac_infer_options *options = run->options;
  lac_status st = laci_check_run_options(&options->run, err);
  if (st) return st;
  if (is_stepping_engine_named(options) && options->run.dtype != LAC_DTYPE_F32) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "the %s engine does not compute in %s",
                     options->run.engine, lac_dtype_name(options->run.dtype));
  }
  run->dtype = laci_dtype_find_supported_or_warn(laci_engine_name_or_default(options->run.engine),
                                                 options->run.dtype);
  for (int at = 0; at < options->n_shapes; at++) {
    const lac_engine_shape *shape = &options->shapes[at];
    if (laci_inference_find_input(run, shape->name) < 0) {
      return laci_graph_fail_unknown_input(run->graph, shape->name, err);
    }
  }
  return LAC_OK;
}

static bool is_computed_as_f64(const laci_inference *run, int value) {
  const laci_value *v = &run->graph->values[value];
  return v->stored < 0 && v->type.dtype == LAC_DTYPE_F64;
}

/* Returns the engine that runs node by node; NULL: use one with a plan. Plans compute in f32, so
 * networks with f64 inputs or outputs are run node by node if no engine was named. */
static const char *find_stepping_engine(const laci_inference *run) {
  const laci_graph *graph = run->graph;
  bool doubles = false;
  if (is_stepping_engine_named(run->options)) return run->options->run.engine;
  if (strcmp(laci_engine_name_or_default(run->options->run.engine), LACI_ENGINE_AUTO) != 0)
    return NULL;
  for (int at = 0; at < graph->n_inputs; at++)
    doubles |= is_computed_as_f64(run, graph->inputs[at]);
  for (int at = 0; at < graph->n_outputs; at++)
    doubles |= is_computed_as_f64(run, graph->outputs[at]);
  if (!doubles) return NULL;
  laci_log(LAC_LOG_INFO, "the network runs exactly, which is slow: elements of type f64");
  return LACI_ENGINE_EXACT;
}

/* ---- The whole inference ---- */

static lac_status inference_init(laci_inference *run, const lac_model *model,
                                 const lac_infer_options *options, int n_inputs, lac_error *err) {
  *run = (laci_inference){.options = options,
                          .budget = laci_budget_with_limit(options->run.max_memory)};
  lac_status st = laci_model_view_create(model, &run->view, err);
  if (st) return st;
  run->graph = run->view->graph;
  const size_t n_in = (size_t)run->graph->n_inputs, n_out = (size_t)run->graph->n_outputs;
  run->inputs = laci_alloc(n_in, sizeof *run->inputs);
  run->outputs = laci_alloc(n_out, sizeof *run->outputs);
  run->writers = laci_alloc(n_out, sizeof *run->writers);
  run->keep = laci_alloc(n_inputs > 0 ? (size_t)n_inputs : 0, sizeof *run->keep);
  run->result = laci_alloc(1, sizeof *run->result);
  bool whole = run->inputs && run->outputs && run->writers && run->keep && run->result;
  return whole ? LAC_OK : laci_fail_memory(err, "an inference");
}

/* Frees the inference, and the result if it was not returned. */
static void inference_clear(laci_inference *run) {
  for (int at = 0; run->inputs && at < run->graph->n_inputs; at++) {
    laci_buf_destroy(run->inputs[at]);
  }
  laci_inference_clear_outputs(run);
  laci_inference_close_files(run);
  laci_stepper_destroy(run->walk);
  laci_free(run->inputs);
  laci_free(run->writers);
  laci_free(run->keep);
  laci_model_view_destroy(run->view);
  lac_infer_result_destroy(run->result ? &run->result->pub : NULL);
}

static lac_status check_files(const lac_infer_input *inputs, int n_inputs, lac_error *err) {
  if (n_inputs < 0 || (n_inputs > 0 && !inputs)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "lac_infer: n_inputs is %d, and inputs is%s NULL",
                     n_inputs, inputs ? " not" : "");
  }
  for (int at = 0; at < n_inputs; at++) {
    const laci_named_pointer given[] = {{"name", inputs[at].name}, {"path", inputs[at].path}};
    lac_status st = laci_check_arguments_not_null("lac_infer", given, 2, err);
    if (st) return st;
  }
  return LAC_OK;
}

lac_status lac_infer(const lac_model *model, const lac_infer_input *inputs, int n_inputs,
                     const char *folder, const lac_infer_options *options,
                     lac_infer_result **result, lac_error *err) {
  lac_infer_options own;
  laci_inference run;
  laci_file_set set;
  if (result) *result = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"folder", folder});
  if (!st) st = check_files(inputs, n_inputs, err);
  if (!st) st = laci_take_infer_options(options, &own, err);
  if (!st) st = laci_check_engine_shapes(own.shapes, own.n_shapes, err);
  if (st) return st;
  lac_context *before = laci_call_enter_context(own.run.context);
  laci_file_set_begin(&set);
  st = inference_init(&run, model, &own, n_inputs, err);
  if (!st) st = resolve_options(&run, err);
  if (!st) st = laci_inference_read_inputs(&run, inputs, n_inputs, err);
  if (!st) run.result->pub.batch = find_batch_size(&run);
  if (!st) st = laci_inference_choose_output_paths(&run, folder, err);
  if (!st) st = laci_inference_open_outputs(&run, model, folder, err);
  if (!st) {
    run.walker = find_stepping_engine(&run);
    st = run.walker ? laci_inference_run_steps(&run, model, err)
                    : laci_inference_run_planned(&run, err);
  }
  if (!st) st = laci_inference_write_outputs(&run, err);
  if (!st && result) {
    *result = &run.result->pub;
    run.result = NULL;
  }
  inference_clear(&run);
  st = laci_file_set_end(&set, st, err);
  laci_call_leave_context(before);
  if (st && result) {
    lac_infer_result_destroy(*result);
    *result = NULL;
  }
  return st;
}

void lac_infer_result_destroy(lac_infer_result *result) {
  if (!result) return;
  laci_arena_clear(&((laci_infer_result *)result)->arena);
  laci_free(result);
}
