/* SPDX-License-Identifier: Apache-2.0
 * What a job logs while it works, and whether it is to end: levels, sinks that the caller sets
 * (the library itself never prints), the interrupt.
 *
 * All of it is of the context (lacuna/context.h) that the calling thread is in. A thread that works
 * for another one enters that one's context first: those of pool.h do. */
#ifndef LACI_BASE_LOG_H
#define LACI_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/log.h"

typedef struct lac_context lac_context;

/** printf-style line (no newline) to the sink, if the level is wanted. Any thread. */
void laci_log(lac_log_level level, const char *format, ...) LAC_PRINTF(2, 3);
bool laci_log_wanted(lac_log_level level);

/** Progress of a long job, 0..total; cheap to call often; the sink decides what to show. Any
 * thread. */
void laci_progress(const char *what, int64_t done, int64_t total);

/** True once the user asked to stop (lac_interrupt): long jobs look at it now and then. */
bool laci_interrupted(void);

/** The same, and the request is met: for work that ends early and lets what follows go on. */
bool laci_interrupt_take(void);

/** The context of the calling thread, for one that works for it; never NULL. */
lac_context *laci_context_current(void);

/** What 0 threads mean in the calling thread's context; 0: the cores this process may use. */
int laci_context_threads(void);

#endif
