/* SPDX-License-Identifier: Apache-2.0
 * What the library logs while it works. It never prints by itself: a caller that wants lines
 * sets a sink. What is set here is the process's own; several jobs at a time, each with a log and
 * an interrupt of its own, are lacuna/context.h's.
 *
 * Threads. lac_interrupt is for any thread; sinks are set before work starts. */
#ifndef LACUNA_LOG_H
#define LACUNA_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How much a message matters; a sink gets those up to its level. */
typedef enum lac_log_level {
  LAC_LOG_ERROR,
  LAC_LOG_WARNING,
  LAC_LOG_INFO,  /* what was permuted and pruned */
  LAC_LOG_DEBUG, /* how the search went */
  LAC_LOG_TRACE, /* every class and node */
} lac_log_level;

/** Called with one line without newline; any thread, one call at a time. */
typedef void lac_log_sink(lac_log_level level, const char *line, void *context);
/** Called with how far a job `what` has come; done == total ends it. One call at a time. */
typedef void lac_progress_sink(const char *what, int64_t done, int64_t total, void *context);

/** For all threads that are in no context of their own; NULL switches off. Set before work starts.
 * Lines above `level` are not made at all. */
LAC_API void lac_log_set(lac_log_level level, lac_log_sink *sink, void *context);
/** The same for progress: where it goes, and what is handed to it. */
LAC_API void lac_progress_set(lac_progress_sink *sink, void *context);

/** Asks running work to end: a search ends with the best it found so far, which meets the request
 * (ask again to end what follows); other work fails LAC_INTERRUPTED. Safe in a signal handler.
 * lac_interrupt(false) takes it back. */
LAC_API void lac_interrupt(bool stop);

#ifdef __cplusplus
}
#endif
#endif
