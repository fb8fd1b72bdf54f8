/* SPDX-License-Identifier: Apache-2.0
 * Log, progress and interrupt. The library never prints by itself: a caller that wants log lines
 * sets a sink. The settings made here are the process's: of all calls that have no context. For
 * several jobs at the same time, each with a separate log and interrupt, see lacuna/context.h.
 *
 * Threads. Any thread may call lac_interrupt. Set the sinks before work starts. */
#ifndef LACUNA_LOG_H
#define LACUNA_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Severity of a message. A sink gets the messages up to the level that was set. */
typedef enum lac_log_level {
  LAC_LOG_ERROR = 0,
  LAC_LOG_WARNING = 1,
  LAC_LOG_INFO = 2,  /* what was permuted and pruned */
  LAC_LOG_DEBUG = 3, /* how the search proceeded */
  LAC_LOG_TRACE = 4, /* details of every node and class of axes */
} lac_log_level;

/** A caller's function that gets each log line, without newline. It is called by the thread that
 * called the library, and by any of the threads that work for it. These are threads of the library,
 * of the OpenMP run time, of lac_parallel, or of an engine from a plug-in. Calls for one context
 * come one at a time. It must not call functions that log, and may call lac_context_interrupt. */
typedef void lac_log_sink(lac_log_level level, const char *line, void *context);
/** A caller's function that gets the progress of a job: `done` of `total`, equal when the job ends;
 * `what` is the job's name. It is called by the threads that call a lac_log_sink, one call at a
 * time for a context. A log line may come from another thread meanwhile. */
typedef void lac_progress_sink(const char *what, int64_t done, int64_t total, void *context);

/** Sets the log's sink, and `context` for its calls, for all calls that have no lac_context; sink
 * NULL: no log. Call it before work starts. Lines above `level` are not even formatted. */
LAC_API void lac_log_set(lac_log_level level, lac_log_sink *sink, void *context);
/** Sets the sink of progress, and `context` for its calls, for all calls that have no lac_context;
 * sink NULL: none. */
LAC_API void lac_progress_set(lac_progress_sink *sink, void *context);

/** Asks running work to end. A search ends with the best order found so far, and this fulfils the
 * request: call again to end the work after it. Other work fails LAC_INTERRUPTED. It is for all
 * calls that have no lac_context. Any thread may call it; safe in a signal handler.
 * lac_interrupt(false) cancels the request. */
LAC_API void lac_interrupt(bool stop);

#ifdef __cplusplus
}
#endif
#endif
