/* SPDX-License-Identifier: Apache-2.0
 * A context: the log, the progress, the interrupt and the number of threads of one job, so that
 * several jobs run side by side in one process and each has its own.
 *
 *     lac_context_create(&context, &err);
 *     lac_context_set_log(context, LAC_LOG_INFO, sink, mine);
 *     lac_context *before = lac_context_enter(context);          from here on this thread's calls
 *     lac_prune(model, &options, &report, &err);
 *     lac_context_enter(before);
 *
 * A thread works in the context that it entered last, and so do all threads that its calls use. One
 * that entered none works in the process's own, which lac_log_set, lac_progress_set and
 * lac_interrupt (log.h) speak of: a program with one job at a time needs no other.
 *
 * Threads. Any number may be in one context at a time; their jobs then share all that it has. The
 * sinks are set before work starts; a sink is called by one thread of its context at a time. */
#ifndef LACUNA_CONTEXT_H
#define LACUNA_CONTEXT_H

#include <stdbool.h>

#include "lacuna/log.h"
#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A log and progress of their own; opaque. */
typedef struct lac_context lac_context;

/** Without sinks, not interrupted, all cores. *context is NULL on failure. Fails LAC_NO_MEMORY. */
LAC_API LAC_MUST_CHECK lac_status lac_context_create(lac_context **context, lac_error *err);
/** No thread may be in it, and none of its jobs may go on. NULL is fine. */
LAC_API void lac_context_destroy(lac_context *context);

/** The calling thread works in this context from now on; NULL: in the process's own. Returns the
 * one that it was in. Not while a call of this thread goes on (in a sink, say). */
LAC_API lac_context *lac_context_enter(lac_context *context);

/* Of the functions below, `context` NULL means the process's own. */

/** As lac_log_set and lac_progress_set. */
LAC_API void lac_context_set_log(lac_context *context, lac_log_level level, lac_log_sink *sink,
                                 void *user);
/** The same for progress: where it goes, and what is handed to it. */
LAC_API void lac_context_set_progress(lac_context *context, lac_progress_sink *sink, void *user);

/** What `threads` 0 of options means: so many, 1..1024; 0: the cores this process may use. */
LAC_API void lac_context_set_threads(lac_context *context, int threads);

/** As lac_interrupt, for the jobs of this context. Any thread; safe in a signal handler. */
LAC_API void lac_context_interrupt(lac_context *context, bool stop);

#ifdef __cplusplus
}
#endif
#endif
