/* SPDX-License-Identifier: Apache-2.0
 * lac_infer on an engine that makes a plan: one run of a session. The memory limit covers the
 * session and the inputs together. The arrays have the types of the files. */
#include <string.h>

#include "api/run/infer.h"
#include "api/run/infer_in.h"
#include "api/run/session_in.h"
#include "base/budget.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "tensor/buf.h"

static lac_status copy_facts(laci_infer_result *result, const lac_engine *engine, lac_error *err) {
  const lac_engine_facts about = laci_model_engine_facts(engine);
  lac_infer_result *r = &result->pub;
  r->dtype = about.dtype;
  r->n_nodes = about.n_nodes;
  r->n_exact = about.n_exact;
  r->engine = laci_arena_text(&result->arena, about.name);
  if (about.exact_reason) r->exact_reason = laci_arena_text(&result->arena, about.exact_reason);
  r->n_sparse = laci_model_engine_n_sparse(engine);
  bool whole = r->engine && !about.exact_reason == !r->exact_reason;
  return whole ? LAC_OK : laci_fail_memory(err, "the result");
}

/* Returns the values as an array for the session. made [count]: memory for the converted elements.
 */
static lac_array make_array_of_values(const laci_buf *buf, void *made) {
  const lac_dtype dtype = buf->f ? LAC_DTYPE_F32 : LAC_DTYPE_I64;
  lac_array array = {.dtype = dtype,
                     .rank = buf->shape.rank,
                     .data = made,
                     .size_bytes = (size_t)buf->count * lac_dtype_size(dtype)};
  memcpy(array.shape, buf->shape.dims, sizeof array.shape);
  for (int64_t k = 0; k < buf->count; k++) {
    if (buf->f) ((float *)made)[k] = (float)buf->f[k];
    else ((int64_t *)made)[k] = buf->i[k];
  }
  return array;
}

/* Converts the inputs for the session, and frees them. */
static lac_status convert_inputs(laci_inference *run, lac_array *arrays, lac_error *err) {
  for (int at = 0; at < run->graph->n_inputs; at++) {
    laci_buf **buf = &run->inputs[at];
    void *made = laci_alloc((size_t)(*buf)->count, (*buf)->f ? sizeof(float) : sizeof(int64_t));
    if (!made) return laci_fail_memory(err, "the inputs");
    arrays[at] = make_array_of_values(*buf, made);
    laci_buf_destroy(*buf);
    *buf = NULL;
  }
  return LAC_OK;
}

/* Creates a session of one plan, within the budget. */
static lac_status create_session(const laci_inference *run, lac_session **session, lac_error *err) {
  lac_session_options options = lac_session_options_default();
  options.run = run->options->run;
  options.run.dtype = run->dtype;
  options.n_plans = options.n_copies = 1;
  lac_status st = lac_session_create(run->view, &options, session, err);
  if (st) return st;
  (*session)->base = &run->budget;
  (*session)->as_computed = true;
  return LAC_OK;
}

/* Plans the network for the inputs' shapes, and describes the plan. held: bytes of all ports. */
static lac_status plan_for_input_shapes(laci_inference *run, lac_session *session,
                                        const lac_engine **engine, size_t *held, lac_error *err) {
  laci_shape *shapes = laci_alloc((size_t)run->graph->n_inputs, sizeof *shapes);
  laci_session_engine *e = NULL;
  if (!shapes) return laci_fail_memory(err, "the shapes of the inputs");
  for (int at = 0; at < run->graph->n_inputs; at++) shapes[at] = run->inputs[at]->shape;
  lac_status st = laci_session_take_engine(session, shapes, &e, err);
  laci_free(shapes);
  if (st) return st;
  laci_budget budget = run->budget;
  laci_budget_add_unnamed(&budget, e->bytes);
  for (int at = 0; at < e->n_inputs; at++) *held += e->inputs[at].size_bytes;
  for (int at = 0; at < e->n_outputs; at++) { /* outputs are held twice: in the engine, and as they
                                                 are written */
    const lac_engine_port *port = &e->outputs[at];
    *held += port->size_bytes;
    laci_budget_add(&budget, 2 * port->size_bytes, "output '%.200s'", port->name);
  }
  st = laci_budget_check(&budget, "the run with its outputs", err);
  *engine = e->engine;
  laci_session_give_back(session, e);
  if (!st) laci_log_plan(*engine);
  return st ? st : copy_facts(run->result, *engine, err);
}

lac_status laci_inference_run_planned(laci_inference *run, lac_error *err) {
  const int n_in = run->graph->n_inputs, n_out = run->graph->n_outputs;
  const lac_engine *engine = NULL;
  lac_session *session = NULL;
  size_t held = 0;
  lac_array *inputs = laci_alloc((size_t)n_in, sizeof *inputs);
  lac_status st = inputs ? create_session(run, &session, err) : laci_fail_memory(err, "the inputs");
  if (!st) st = plan_for_input_shapes(run, session, &engine, &held, err);
  if (!st) st = convert_inputs(run, inputs, err);
  for (int at = 0; at < n_out && run->options->f32; at++) {
    const lac_dtype declared = laci_inference_output(run, at)->type.dtype;
    if (laci_dtype_is_float(declared)) run->outputs[at].dtype = LAC_DTYPE_F32;
  }
  const double begin = laci_clock_seconds();
  if (!st) st = lac_session_run(session, inputs, n_in, run->outputs, n_out, err);
  run->result->pub.seconds = laci_clock_seconds() - begin;
  if (!st) laci_log_memory(engine, held);
  for (int at = 0; inputs && at < n_in; at++) laci_free(inputs[at].data);
  laci_free(inputs);
  lac_session_destroy(session);
  return st;
}

void laci_inference_clear_outputs(laci_inference *run) {
  if (run->outputs) lac_session_release(run->outputs, run->graph->n_outputs);
  laci_free(run->outputs);
  run->outputs = NULL;
}
