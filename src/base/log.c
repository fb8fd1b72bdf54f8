/* SPDX-License-Identifier: Apache-2.0
 * The sinks: one for lines, one for progress, behind a mutex each, so that a sink is called by one
 * thread at a time. Whether a line is wanted is one atomic read, so a silent library pays nothing
 * for its story. */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

enum { LINE_BYTES = 2048 };

static atomic_int wanted_level = -1; /* lines above it are not made; -1: none */
static atomic_bool progress_wanted;
static atomic_int stop_asked; /* lock-free: written by signal handlers */

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static lac_log_sink *log_sink;
static void *log_context;

static pthread_mutex_t progress_lock = PTHREAD_MUTEX_INITIALIZER;
static lac_progress_sink *progress_sink;
static void *progress_context;

void lac_log_set(lac_log_level level, lac_log_sink *sink, void *context) {
  pthread_mutex_lock(&log_lock);
  log_sink = sink;
  log_context = context;
  atomic_store(&wanted_level, sink ? (int)level : -1);
  pthread_mutex_unlock(&log_lock);
}

void lac_progress_set(lac_progress_sink *sink, void *context) {
  pthread_mutex_lock(&progress_lock);
  progress_sink = sink;
  progress_context = context;
  atomic_store(&progress_wanted, sink != NULL);
  pthread_mutex_unlock(&progress_lock);
}

void lac_interrupt(bool stop) { atomic_store(&stop_asked, stop); }

bool laci_interrupted(void) { return atomic_load_explicit(&stop_asked, memory_order_relaxed) != 0; }

bool laci_log_wanted(lac_log_level level) {
  return (int)level <= atomic_load_explicit(&wanted_level, memory_order_relaxed);
}

void laci_log(lac_log_level level, const char *format, ...) {
  if (!laci_log_wanted(level)) return;
  char line[LINE_BYTES];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(line, sizeof line, format, args);
  va_end(args);
  pthread_mutex_lock(&log_lock);
  if (log_sink) log_sink(level, line, log_context);
  pthread_mutex_unlock(&log_lock);
}

void laci_progress(const char *what, int64_t done, int64_t total) {
  if (!atomic_load_explicit(&progress_wanted, memory_order_relaxed)) return;
  pthread_mutex_lock(&progress_lock);
  if (progress_sink) progress_sink(what, done, total, progress_context);
  pthread_mutex_unlock(&progress_lock);
}
