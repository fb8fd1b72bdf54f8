/* SPDX-License-Identifier: Apache-2.0
 * Logging and interruption of jobs: levels, sinks that the caller sets (the library itself never
 * prints), and the interrupt.
 *
 * All of this belongs to the context (lacuna/context.h) of the call that the thread works for. Each
 * function of the public interface that works enters its context first, and leaves it at its end.
 * A thread that works for another thread must first enter the context of that thread, as the
 * threads of pool.h do. */
#ifndef LACI_BASE_LOG_H
#define LACI_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/log.h"

typedef struct lac_context lac_context;

/** Logs a printf-style line (without newline), if its level is enabled. Callable from any
 * thread. */
void laci_log(lac_log_level level, const char *format, ...) LAC_PRINTF(2, 3);
bool laci_log_is_enabled(lac_log_level level);

/** Reports the progress of a long job named `what`: `done` of `total` units. Cheap to call often,
 * since the sink decides what to show. Callable from any thread. */
void laci_progress(const char *what, int64_t done, int64_t total);

/** Has the user asked to stop (lac_interrupt)? Long jobs check this now and then. */
bool laci_interrupted(void);

/** Returns the same as laci_interrupted, and clears the request: for work that ends early and lets
 * later work continue. */
bool laci_clear_interrupt(void);

/** Begins a call of the public interface: enters the context `wanted`. NULL: the thread stays in
 * the context of the enclosing call, or in the process's. Returns the previous context, which the
 * call passes to laci_context_enter at its end. */
lac_context *laci_context_begin_call(lac_context *wanted);

/** Makes the calling thread work in this context; NULL: the process's. Returns the context that the
 * thread had entered before. */
lac_context *laci_context_enter(lac_context *context);

/** Returns the context that the calling thread has entered, for an object to keep; NULL: none. */
lac_context *laci_context_entered_by_thread(void);

/** Returns the context of the calling thread, to be entered by a thread that works for it; never
 * NULL. */
lac_context *laci_context_current(void);

/** Returns the number of threads that the calling thread's context uses where an option says 0. The
 * result 0 stands for all cores that this process may use. */
int laci_context_threads(void);

#endif
