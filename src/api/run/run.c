/* SPDX-License-Identifier: Apache-2.0
 * lac_run: runs a network node after node in double (laci_stepper, engine/engine.h); inputs and
 * outputs are float32. */
#include "lacuna/run.h"

#include <string.h>

#include "api/model/model_in.h"
#include "base/budget.h"
#include "base/memory.h"
#include "base/to_int.h"
#include "cpu/pool.h"
#include "engine/engine.h"
#include "base/error.h"
#include "base/log.h"
#include "graph/graph.h"
#include "tensor/buf.h"

typedef struct run_result {
  lac_run_result pub; /* first: a lac_run_result * is a run_result * */
  laci_arena arena;
} run_result;

/* Finds the input of this name, or without names the one at this index. */
static const lac_run_tensor *find_input(const char *name, int place, const lac_run_tensor *inputs,
                                        int n_inputs) {
  for (int i = 0; i < n_inputs; i++) {
    if (inputs[i].name ? strcmp(inputs[i].name, name) == 0 : i == place) return &inputs[i];
  }
  return NULL;
}

/* Converts an input to the plain engine's format, in the element type that the network declares. */
static lac_status convert_input(const laci_value *value, const lac_run_tensor *input,
                                laci_buf **buf, lac_error *err) {
  if (input->rank < 0 || input->rank > LACI_MAX_RANK) {
    return laci_fail(err, LAC_BAD_SHAPE, "%s: rank %d, wanted 0 to %d", value->name, input->rank,
                     LACI_MAX_RANK);
  }
  laci_shape shape = laci_shape_of(input->rank, input->shape);
  if (laci_shape_count(&shape) < 0) {
    return laci_fail(err, LAC_BAD_SHAPE, "%s: a size is negative, or the tensor is too large",
                     value->name);
  }
  lac_dtype dtype = value->type.dtype == LAC_DTYPE_NONE ? LAC_DTYPE_F32 : value->type.dtype;
  lac_status st = laci_buf_create(dtype, &shape, buf, err);
  if (st) return laci_fail_with_prefix(err, st, "%s", value->name);
  for (int64_t i = 0; i < (*buf)->count; i++) {
    float x = input->values[i];
    if ((*buf)->f) {
      (*buf)->f[i] = (double)x;
    } else if (x > -9e18f && x < 9e18f) {
      (*buf)->i[i] = laci_int_from_f((double)x);
    } else {
      return laci_fail(err, LAC_BAD_VALUE, "%s: element %lld is %g, and the network wants integers",
                       value->name, (long long)i, (double)x);
    }
  }
  return LAC_OK;
}

static lac_status set_inputs(laci_stepper *run, const laci_graph *graph,
                             const lac_run_tensor *inputs, int n_inputs, lac_error *err) {
  for (int i = 0; i < n_inputs; i++) {
    bool known = !inputs[i].name;
    for (int j = 0; j < graph->n_inputs && !known; j++) {
      known = strcmp(inputs[i].name, graph->values[graph->inputs[j]].name) == 0;
    }
    if (!known) return laci_fail(err, LAC_NOT_FOUND, "%s: no input of that name", inputs[i].name);
  }
  for (int i = 0; i < graph->n_inputs; i++) {
    const laci_value *value = &graph->values[graph->inputs[i]];
    const lac_run_tensor *input = find_input(value->name, i, inputs, n_inputs);
    if (!input) return laci_fail(err, LAC_NOT_FOUND, "%s: this input is missing", value->name);
    laci_buf *buf = NULL;
    lac_status st = convert_input(value, input, &buf, err);
    if (st) {
      laci_buf_destroy(buf);
      return st;
    }
    laci_stepper_set_value(run, graph->inputs[i], buf);
  }
  return LAC_OK;
}

static lac_status run_nodes(laci_stepper *run, const laci_graph *graph, lac_error *err) {
  for (int node = 0; node < graph->n_nodes; node++) {
    if (laci_interrupted()) return laci_fail(err, LAC_INTERRUPTED, "interrupted");
    lac_status st = laci_stepper_step(run, node, err);
    if (st) return st;
  }
  return LAC_OK;
}

static lac_status copy_output(const laci_buf *buf, laci_arena *arena, lac_run_tensor *output,
                              lac_error *err) {
  float *values = laci_arena_alloc(arena, (size_t)buf->count, sizeof *values);
  if (!values) return laci_fail_memory(err, output->name);
  for (int64_t i = 0; i < buf->count; i++) values[i] = (float)laci_buf_get_f(buf, i);
  output->values = values;
  output->rank = buf->shape.rank;
  memcpy(output->shape, buf->shape.dims, sizeof output->shape);
  return LAC_OK;
}

static lac_status copy_outputs(const laci_stepper *run, const laci_graph *graph, run_result *result,
                               lac_error *err) {
  lac_run_tensor *outputs =
      laci_arena_alloc(&result->arena, (size_t)graph->n_outputs, sizeof *outputs);
  if (!outputs) return laci_fail_memory(err, "the outputs");
  result->pub.outputs = outputs;
  for (int i = 0; i < graph->n_outputs; i++) {
    const laci_buf *buf = laci_stepper_value(run, graph->outputs[i]);
    const char *name = graph->values[graph->outputs[i]].name;
    outputs[i].name = laci_arena_text(&result->arena, name);
    if (!outputs[i].name) return laci_fail_memory(err, name);
    if (!buf) return laci_fail(err, LAC_UNSUPPORTED, "%s: this output could not be computed", name);
    lac_status st = copy_output(buf, &result->arena, &outputs[i], err);
    if (st) return st;
    result->pub.n_outputs++;
  }
  return LAC_OK;
}

static lac_status check_inputs(const lac_run_tensor *inputs, int n_inputs, lac_error *err) {
  if (n_inputs < 0) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "lac_run: n_inputs is %d, wanted 0 or more", n_inputs);
  }
  if (n_inputs > 0 && !inputs) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "lac_run: inputs is NULL, but n_inputs is %d",
                     n_inputs);
  }
  for (int i = 0; i < n_inputs; i++) {
    if (inputs[i].values) continue;
    return laci_fail(err, LAC_BAD_ARGUMENT, "lac_run: values of input %d is NULL", i);
  }
  return LAC_OK;
}

lac_status lac_run(const lac_model *model, const lac_run_tensor *inputs, int n_inputs, int threads,
                   lac_run_result **out, lac_error *err) {
  laci_pool *pool = NULL;
  laci_stepper *run = NULL;
  laci_budget budget = laci_budget_with_limit(0);
  if (out) *out = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"result", out});
  if (!st) st = check_inputs(inputs, n_inputs, err);
  if (st) return st;
  run_result *result = laci_alloc(1, sizeof *result);
  st = result ? LAC_OK : laci_fail_memory(err, "a result");
  if (!st) st = laci_model_materialise(model, err);
  if (!st) st = laci_pool_create(threads, &pool, err);
  if (!st) {
    laci_model_add_stored_to_budget(model, &budget);
    const laci_stepper_options options = {.pool = pool, .budget = &budget};
    st = laci_stepper_create(model->graph, &options, &run, err);
  }
  if (!st) st = set_inputs(run, model->graph, inputs, n_inputs, err);
  if (!st) st = run_nodes(run, model->graph, err);
  if (!st) st = copy_outputs(run, model->graph, result, err);
  laci_stepper_destroy(run);
  laci_pool_destroy(pool);
  if (st) lac_run_result_destroy(result ? &result->pub : NULL);
  else *out = &result->pub;
  return st;
}

void lac_run_result_destroy(lac_run_result *result) {
  if (!result) return;
  laci_arena_clear(&((run_result *)result)->arena);
  laci_free(result);
}
