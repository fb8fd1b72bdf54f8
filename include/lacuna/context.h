/* SPDX-License-Identifier: Apache-2.0
 * A context holds the log, progress, interrupt and number of threads of one job. So several jobs in
 * one process can have different ones.
 *
 *     lac_context_create(&context, &err);
 *     lac_context_set_log(context, LAC_LOG_INFO, sink, mine);
 *     options.context = context;
 *     lac_prune(model, &options, &report, &err);
 *
 * A call's context is the field `context` of its options, or of lac_run_options in them (`run`), or
 * an argument where there are no options. An engine and a session keep the one that they were made
 * with, for all of their runs. NULL stands for the process's own context, which lac_log_set,
 * lac_progress_set and lac_interrupt (log.h) set. A program with one job at a time needs no other.
 * A call within another one, for example in a listener, belongs to the other's context unless it
 * names one. All threads that work for a call use its context, and no thread keeps it afterwards.
 *
 * Threads. Any number of calls may use one context at a time; they then share its settings. Set the
 * sinks before work starts; one thread of a context at a time calls a sink. */
#ifndef LACUNA_CONTEXT_H
#define LACUNA_CONTEXT_H

#include <stdbool.h>

#include "lacuna/log.h"
#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The log, progress, interrupt and number of threads of a job; opaque. */
typedef struct lac_context lac_context;

/** Creates a context without sinks, not interrupted, with all cores. *context is NULL on failure.
 * Fails LAC_NO_MEMORY. */
LAC_API LAC_MUST_CHECK lac_status lac_context_create(lac_context **context, lac_error *err);
/** Frees the context. No call with it may run, and no engine or session that was made with it may
 * exist. NULL is fine. */
LAC_API void lac_context_destroy(lac_context *context);

/* Of the functions below, `context` NULL means the process's own. */

/** Sets the context's log as lac_log_set does; `user` is passed to the sink. */
LAC_API void lac_context_set_log(lac_context *context, lac_log_level level, lac_log_sink *sink,
                                 void *user);
/** Sets the context's progress as lac_progress_set does; `user` is passed to the sink. */
LAC_API void lac_context_set_progress(lac_context *context, lac_progress_sink *sink, void *user);

/** Sets the number of threads, 1..1024, that is used if options have `threads` 0; 0: the cores this
 * process may use. */
LAC_API void lac_context_set_threads(lac_context *context, int threads);

/** Does lac_interrupt for the jobs of this context. Any thread may call it; safe in a signal
 * handler. */
LAC_API void lac_context_interrupt(lac_context *context, bool stop);

#ifdef __cplusplus
}
#endif
#endif
