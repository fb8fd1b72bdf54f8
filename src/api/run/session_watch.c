/* SPDX-License-Identifier: Apache-2.0
 * Runs an engine of a session, and shows its steps to a watcher. */
#include "api/run/infer.h"
#include "api/run/session_in.h"
#include "base/memory.h"
#include "engine/engine.h"

void lac_session_watch(lac_session *session, lac_on_step *on_step, void *context) {
  if (!session) return;
  (void)pthread_mutex_lock(&session->plans.lock);
  session->watcher = (laci_session_watcher){on_step, context};
  (void)pthread_mutex_unlock(&session->plans.lock);
  __atomic_store_n(&session->is_watched, on_step != NULL, __ATOMIC_RELEASE);
}

static laci_session_watcher copy_watcher(lac_session *session) {
  laci_session_watcher found = {0};
  if (!__atomic_load_n(&session->is_watched, __ATOMIC_ACQUIRE)) return found;
  (void)pthread_mutex_lock(&session->plans.lock);
  found = session->watcher;
  (void)pthread_mutex_unlock(&session->plans.lock);
  return found;
}

static void report_steps(const laci_session_watcher *watcher, const laci_engine *engine,
                         const double *begins, const double *seconds) {
  const size_t n = laci_engine_step_count(engine);
  for (size_t k = 0; k < n; k++) {
    const laci_engine_step step = laci_engine_step_info(engine, k);
    const lac_session_step shown = {.size = sizeof shown,
                                    .name = step.name,
                                    .op = step.what ? step.what : step.op,
                                    .kernel = step.kernel,
                                    .sparse = step.sparse,
                                    .begin_seconds = begins[k],
                                    .seconds = seconds[k]};
    watcher->on_step(watcher->context, &shown);
  }
}

lac_status laci_session_run_engine(lac_session *session, laci_session_engine *e, lac_error *err) {
  const laci_session_watcher watcher = copy_watcher(session);
  const laci_engine *engine = laci_model_engine_inner(e->engine);
  const size_t n = laci_engine_step_count(engine);
  /* If there is no memory for the times, the run is not watched. */
  if (watcher.on_step && !e->times) e->times = laci_alloc(2 * n, sizeof *e->times);
  if (!watcher.on_step || !e->times) return lac_engine_run(e->engine, e->in, e->out, err);
  const laci_engine_watch watch = {.begins = e->times, .seconds = e->times + n};
  lac_status st = laci_model_engine_run(e->engine, e->in, e->out, &watch, err);
  if (!st) report_steps(&watcher, engine, watch.begins, watch.seconds);
  return st;
}
