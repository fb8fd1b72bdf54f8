/* SPDX-License-Identifier: Apache-2.0
 * A context holds the log, progress, interrupt and number of threads of one job. So several jobs in
 * one process can have different ones.
 *
 *     lac_context_create(&context, &err);
 *     lac_context_set_log(context, LAC_LOG_INFO, sink, mine);
 *     lac_context *before = lac_context_enter(context);          from here on this thread's calls
 *     lac_prune(model, &options, &report, &err);
 *     lac_context_enter(before);
 *
 * A thread, and all worker threads of its calls, use the context that the thread entered last. A
 * thread that entered none uses the process's context, which lac_log_set, lac_progress_set and
 * lac_interrupt (log.h) set. A program with one job at a time needs no other context.
 *
 * Threads. Any number of threads may be in one context at a time; their jobs then share its
 * settings. Set the sinks before work starts; one thread of a context at a time calls a sink. */
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
/** Frees the context. No thread may be in it, and none of its jobs may still run. NULL is fine. */
LAC_API void lac_context_destroy(lac_context *context);

/** Makes the calling thread use this context from now on; NULL: the process's context. Returns the
 * context that the thread was in before. Must not be called within another call of the library, for
 * example in a sink. */
LAC_API lac_context *lac_context_enter(lac_context *context);

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
