/* SPDX-License-Identifier: Apache-2.0
 * The functions of lacuna/engine.h, over the engines of engine/engine.h. */
#include "lacuna/engine.h"

#include <string.h>

#include "api/infer.h"
#include "api/model_in.h"
#include "api/tuning.h"
#include "base/budget.h"
#include "base/memory.h"
#include "engine/engine.h"
#include "base/error.h"
#include "graph/infer.h"
#include "onnx/onnx.h"

struct lac_engine {
  laci_engine *engine;
  int n_inputs, n_outputs;
  lac_engine_port *inputs, *outputs;
};

lac_engine_options lac_engine_options_default(void) {
  return (lac_engine_options){.dtype = LAC_DTYPE_F32};
}

static lac_status convert_shapes(const lac_engine_options *options, laci_input_shape **shapes,
                                 lac_error *err) {
  *shapes = laci_alloc((size_t)options->n_shapes, sizeof **shapes);
  if (!*shapes) return laci_fail_memory(err, "input shapes");
  for (int at = 0; at < options->n_shapes; at++) {
    const lac_engine_shape *from = &options->shapes[at];
    if (!from->name || from->rank < 0 || from->rank > LACI_MAX_RANK) {
      return laci_fail(err, LAC_BAD_ARGUMENT, "input shape %d: wanted a name and a rank of 0 to %d",
                       at, LACI_MAX_RANK);
    }
    (*shapes)[at] =
        (laci_input_shape){.name = from->name, .shape = laci_shape_of(from->rank, from->shape)};
  }
  return LAC_OK;
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
                              .size_bytes = from[at].size_bytes};
    memcpy(port->shape, from[at].type.shape.dims, (size_t)port->rank * sizeof *port->shape);
  }
  return LAC_OK;
}

static lac_status check_options(const lac_engine_options *options, lac_error *err) {
  if (options->dtype != LAC_DTYPE_F32 && options->dtype != LAC_DTYPE_BF16) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "an engine of type %s, wanted f32 or bf16",
                     lac_dtype_name(options->dtype));
  }
  if (options->n_shapes < 0 || (options->n_shapes > 0 && !options->shapes)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%d input shapes, but no list", options->n_shapes);
  }
  return LAC_OK;
}

lac_status lac_engine_create(const lac_model *model, const lac_engine_options *options,
                             lac_engine **engine, lac_error *err) {
  laci_budget budget = laci_budget_of(options ? options->max_memory : 0);
  return laci_model_engine(model, options, &budget, engine, err);
}

lac_status laci_model_engine(const lac_model *model, const lac_engine_options *options,
                             laci_budget *budget, lac_engine **engine, lac_error *err) {
  laci_input_shape *shapes = NULL;
  laci_engine_weight *weights = NULL;
  int n_weights = 0;
  const laci_engine_port *ports;
  lac_engine_options defaults = lac_engine_options_default();
  if (!options) options = &defaults;
  if (engine) *engine = NULL;
  const laci_given given[] = {{"model", model}, {"engine", engine}};
  lac_status st = laci_check_given("lac_engine_create", given, 2, err);
  if (!st) st = check_options(options, err);
  if (st) return st;
  lac_engine *made = laci_alloc(1, sizeof *made);
  if (!made) return laci_fail_memory(err, "the engine");
  st = convert_shapes(options, &shapes, err);
  if (!st) st = laci_model_weights(model, &weights, &n_weights, err);
  if (!st) {
    laci_engine_options o = {.engine = options->engine,
                             .threads = options->threads,
                             .bf16 = options->dtype == LAC_DTYPE_BF16,
                             .dense_only = options->dense_only,
                             .shapes = shapes,
                             .n_shapes = options->n_shapes,
                             .weights = weights,
                             .n_weights = n_weights,
                             .fetch = model->file ? laci_onnx_fetch : NULL,
                             .fetch_context = model->file,
                             .budget = budget};
    st = laci_tuned_engine_create(model->graph, &o, options->tuning, options->timings,
                                  &made->engine, err);
  }
  if (!st) {
    made->n_inputs = laci_engine_inputs(made->engine, &ports);
    st = copy_ports(made->n_inputs, ports, &made->inputs, err);
  }
  if (!st) {
    made->n_outputs = laci_engine_outputs(made->engine, &ports);
    st = copy_ports(made->n_outputs, ports, &made->outputs, err);
  }
  laci_free(shapes);
  laci_free(weights);
  if (st) lac_engine_destroy(made);
  else *engine = made;
  return st;
}

void lac_engine_destroy(lac_engine *engine) {
  if (!engine) return;
  laci_engine_destroy(engine->engine);
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

int laci_model_engine_sparse(const lac_engine *engine) {
  return laci_engine_sparse_count(engine->engine);
}

lac_status lac_engine_run(lac_engine *engine, const void *const *inputs, void *const *outputs,
                          lac_error *err) {
  lac_status st = LACI_CHECK_GIVEN(err, {"engine", engine});
  if (st) return st;
  for (int at = 0; at < engine->n_inputs; at++) {
    if (inputs && inputs[at]) continue;
    return laci_fail(err, LAC_BAD_ARGUMENT, "input '%s' is NULL", engine->inputs[at].name);
  }
  for (int at = 0; at < engine->n_outputs; at++) {
    if (outputs && outputs[at]) continue;
    return laci_fail(err, LAC_BAD_ARGUMENT, "output '%s' is NULL", engine->outputs[at].name);
  }
  return laci_engine_run(engine->engine, inputs, outputs, err);
}

const char *lac_engine_plan_text(const lac_engine *engine) {
  return engine ? laci_engine_text(engine->engine) : NULL;
}

lac_engine_memory lac_engine_planned(const lac_engine *engine) {
  if (!engine) return (lac_engine_memory){0};
  const laci_engine_memory planned = laci_engine_planned(engine->engine);
  return (lac_engine_memory){.arena_bytes = planned.arena_bytes,
                             .weight_bytes = planned.weight_bytes};
}
