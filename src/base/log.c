/* SPDX-License-Identifier: Apache-2.0
 * Contexts. A context has sinks for lines and for progress, each with a mutex, so that only one
 * thread at a time calls a sink, and the flag of an interrupt. Whether a line is enabled is one
 * atomic read, so a silent library spends no time on its log.
 *
 * A call of the public interface enters its context and leaves it again (laci_context_begin_call).
 * Meanwhile a thread-local variable has the context, so no function has to pass it on; a thread
 * without one uses the context of the process. */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/error.h"
#include "base/memory.h"
#include "lacuna/context.h"

enum { LINE_BYTES = 2048, MAX_THREADS = 1024 };

struct lac_context {
  atomic_int wanted_level; /* lines above this level are not formatted; -1: no line is */
  atomic_bool progress_wanted;
  atomic_int stop_asked; /* an interrupt was requested; lock-free, since signal handlers write it */
  atomic_int threads;

  pthread_mutex_t log_lock;
  lac_log_sink *log_sink;
  void *log_user;

  pthread_mutex_t progress_lock;
  lac_progress_sink *progress_sink;
  void *progress_user;
};

static lac_context process = {.wanted_level = -1,
                              .log_lock = PTHREAD_MUTEX_INITIALIZER,
                              .progress_lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local lac_context *entered; /* context that this thread has entered; NULL: that of
                                              the process */

static lac_context *context_or_default(lac_context *context) {
  return context ? context : &process;
}

lac_context *laci_context_current(void) { return context_or_default(entered); }

lac_context *laci_context_entered_by_thread(void) { return entered; }

lac_context *laci_context_enter(lac_context *context) {
  lac_context *before = entered;
  entered = context;
  return before;
}

lac_context *laci_context_begin_call(lac_context *wanted) {
  return laci_context_enter(wanted ? wanted : entered);
}

/* ---- A context ---- */

lac_status lac_context_create(lac_context **context, lac_error *err) {
  if (context) *context = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"context", context});
  if (st) return st;
  lac_context *made = laci_alloc(1, sizeof *made);
  if (!made) return laci_fail_memory(err, "the context");
  atomic_init(&made->wanted_level, -1);
  pthread_mutex_init(&made->log_lock, NULL); /* these never fail with default attributes */
  pthread_mutex_init(&made->progress_lock, NULL);
  *context = made;
  return LAC_OK;
}

void lac_context_destroy(lac_context *context) {
  if (!context) return;
  pthread_mutex_destroy(&context->log_lock);
  pthread_mutex_destroy(&context->progress_lock);
  laci_free(context);
}

void lac_context_set_log(lac_context *context, lac_log_level level, lac_log_sink *sink,
                         void *user) {
  lac_context *c = context_or_default(context);
  pthread_mutex_lock(&c->log_lock);
  c->log_sink = sink;
  c->log_user = user;
  atomic_store(&c->wanted_level, sink ? (int)level : -1);
  pthread_mutex_unlock(&c->log_lock);
}

void lac_context_set_progress(lac_context *context, lac_progress_sink *sink, void *user) {
  lac_context *c = context_or_default(context);
  pthread_mutex_lock(&c->progress_lock);
  c->progress_sink = sink;
  c->progress_user = user;
  atomic_store(&c->progress_wanted, sink != NULL);
  pthread_mutex_unlock(&c->progress_lock);
}

void lac_context_set_threads(lac_context *context, int threads) {
  int wanted = threads < 0 ? 0 : threads > MAX_THREADS ? MAX_THREADS : threads;
  atomic_store(&context_or_default(context)->threads, wanted);
}

void lac_context_interrupt(lac_context *context, bool stop) {
  atomic_store(&context_or_default(context)->stop_asked, stop);
}

/* ---- The context of the process ---- */

void lac_log_set(lac_log_level level, lac_log_sink *sink, void *context) {
  lac_context_set_log(NULL, level, sink, context);
}

void lac_progress_set(lac_progress_sink *sink, void *context) {
  lac_context_set_progress(NULL, sink, context);
}

void lac_interrupt(bool stop) { lac_context_interrupt(NULL, stop); }

/* ---- Functions for work inside a context ---- */

int laci_context_threads(void) {
  return atomic_load_explicit(&context_or_default(entered)->threads, memory_order_relaxed);
}

bool laci_interrupted(void) {
  return atomic_load_explicit(&context_or_default(entered)->stop_asked, memory_order_relaxed) != 0;
}

bool laci_clear_interrupt(void) {
  return atomic_exchange(&context_or_default(entered)->stop_asked, 0) != 0;
}

bool laci_log_is_enabled(lac_log_level level) {
  return (int)level <=
         atomic_load_explicit(&context_or_default(entered)->wanted_level, memory_order_relaxed);
}

void laci_log(lac_log_level level, const char *format, ...) {
  if (!laci_log_is_enabled(level)) return;
  lac_context *c = context_or_default(entered);
  char line[LINE_BYTES];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(line, sizeof line, format, args);
  va_end(args);
  pthread_mutex_lock(&c->log_lock);
  if (c->log_sink) c->log_sink(level, line, c->log_user);
  pthread_mutex_unlock(&c->log_lock);
}

void laci_progress(const char *what, int64_t done, int64_t total) {
  lac_context *c = context_or_default(entered);
  if (!atomic_load_explicit(&c->progress_wanted, memory_order_relaxed)) return;
  pthread_mutex_lock(&c->progress_lock);
  if (c->progress_sink) c->progress_sink(what, done, total, c->progress_user);
  pthread_mutex_unlock(&c->progress_lock);
}
