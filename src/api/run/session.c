/* SPDX-License-Identifier: Apache-2.0
 * lac_session: creation, description, options. A run is in session_run.c, the plans in
 * session_plans.c. */
#include "lacuna/session.h"

#include <string.h>

#include "api/model/structs.h"
#include "api/run/infer.h"
#include "api/run/session_in.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "engine/engine.h"

enum { DEFAULT_PLANS = 16 };

void lac_session_options_init(lac_session_options *options, size_t size) {
  const lac_session_options usual = {.size = sizeof usual, .run = {.dtype = LAC_DTYPE_F32}};
  laci_struct_set_defaults(&usual, sizeof usual, options, size);
}

/* ---- Creation ---- */

/* Describes values as the network declares them; an input without a type is one of floats. */
static lac_status describe_declared_values(const laci_graph *graph, const int *values, int n,
                                           lac_array **arrays, lac_error *err) {
  *arrays = laci_alloc((size_t)n, sizeof **arrays);
  if (!*arrays) return laci_fail_memory(err, "the session");
  for (int at = 0; at < n; at++) {
    const laci_value *value = &graph->values[values[at]];
    const laci_shape *shape = &value->type.shape;
    lac_array *to = &(*arrays)[at];
    *to = (lac_array){.name = value->name, .dtype = value->type.dtype, .rank = shape->rank};
    if (to->dtype == LAC_DTYPE_NONE && value->is_input) to->dtype = LAC_DTYPE_F32;
    for (int axis = 0; axis < shape->rank; axis++) {
      to->shape[axis] = shape->dims[axis] < 0 ? -1 : shape->dims[axis];
    }
  }
  return LAC_OK;
}

static lac_status copy_text(const char *text, char **copy, lac_error *err) {
  if (!text) return LAC_OK;
  const size_t n = strlen(text) + 1;
  *copy = laci_alloc(n, 1);
  if (!*copy) return laci_fail_memory(err, "the session");
  memcpy(*copy, text, n);
  return LAC_OK;
}

static lac_status check_plan_counts(const lac_session_options *o, lac_error *err) {
  if (o->n_plans >= 0 && o->n_copies >= 0) return LAC_OK;
  const bool plans = o->n_plans < 0;
  return laci_fail(err, LAC_BAD_ARGUMENT, "lac_session_options: %s is %d, wanted 0 or more",
                   plans ? "n_plans" : "n_copies", plans ? o->n_plans : o->n_copies);
}

/* Fills the options of all engines; all of them have the same type and number of threads. */
static lac_status set_options(lac_session *s, const lac_session_options *o, lac_error *err) {
  lac_status st = copy_text(laci_engine_name_or_default(o->run.engine), &s->engine, err);
  if (!st) st = copy_text(o->run.timings, &s->timings, err);
  s->options = lac_engine_options_default();
  s->options.run = o->run;
  s->options.run.engine = s->engine;
  s->options.run.timings = s->timings;
  if (!st) st = laci_check_engine_options(&s->options, err);
  if (!st) st = check_plan_counts(o, err);
  if (!st) st = laci_engine_check_name(s->engine, err);
  if (st) return st;
  s->options.run.threads = laci_pool_threads_wanted(o->run.threads);
  s->parallel = (laci_parallel){.run = o->parallel, .context = o->parallel_context};
  s->options.run.dtype = laci_dtype_find_supported_or_warn(s->engine, o->run.dtype);
  return LAC_OK;
}

static void session_clear(lac_session *s) {
  laci_free(s->inputs);
  laci_free(s->outputs);
  laci_free(s->engine);
  laci_free(s->timings);
  laci_model_view_destroy(s->view);
  laci_free(s);
}

static lac_status create_session(const lac_model *model, const lac_session_options *o,
                                 lac_session **session, lac_error *err) {
  lac_session *s = laci_alloc(1, sizeof *s);
  if (!s) return laci_fail_memory(err, "the session");
  s->context = laci_context_entered_by_thread();
  lac_status st = set_options(s, o, err);
  if (!st) st = laci_model_view_create(model, &s->view, err);
  if (!st) {
    s->n_inputs = s->view->graph->n_inputs;
    s->n_outputs = s->view->graph->n_outputs;
    st = describe_declared_values(s->view->graph, s->view->graph->inputs, s->n_inputs, &s->inputs,
                                  err);
  }
  if (!st)
    st = describe_declared_values(s->view->graph, s->view->graph->outputs, s->n_outputs,
                                  &s->outputs, err);
  if (st) {
    session_clear(s);
    return st;
  }
  const int copies = laci_pool_threads_wanted(0) / s->options.run.threads;
  laci_session_plans_init(s, o->n_plans ? o->n_plans : DEFAULT_PLANS,
                          o->n_copies ? o->n_copies
                          : copies    ? copies
                                      : 1);
  laci_session_list_add(s);
  *session = s;
  return LAC_OK;
}

lac_status lac_session_create(const lac_model *model, const lac_session_options *options,
                              lac_session **session, lac_error *err) {
  lac_session_options o;
  if (session) *session = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"session", session});
  if (!st) st = laci_take_session_options(options, &o, err);
  if (st) return st;
  lac_context *before = laci_call_enter_context(o.run.context);
  st = create_session(model, &o, session, err);
  laci_call_leave_context(before);
  return st;
}

void lac_session_destroy(lac_session *session) {
  if (!session) return;
  laci_session_list_remove(session);
  laci_session_plans_clear(session);
  session_clear(session);
}

/* ---- Description ---- */

int lac_session_inputs(const lac_session *session, const lac_array **inputs) {
  if (inputs) *inputs = session ? session->inputs : NULL;
  return session ? session->n_inputs : 0;
}

int lac_session_outputs(const lac_session *session, const lac_array **outputs) {
  if (outputs) *outputs = session ? session->outputs : NULL;
  return session ? session->n_outputs : 0;
}

lac_status lac_session_about(lac_session *session, lac_session_facts *facts, lac_error *err) {
  lac_status st = LACI_CHECK_GIVEN(err, {"session", session}, {"facts", facts});
  if (!st) st = laci_check_struct_session_facts(facts, err);
  if (st) return st;
  lac_session_facts found = {.size = sizeof found,
                             .engine = session->engine,
                             .dtype = session->options.run.dtype,
                             .threads = session->options.run.threads};
  laci_session_plans_add_facts(session, &found);
  laci_give_session_facts(&found, facts);
  return LAC_OK;
}
