/* SPDX-License-Identifier: Apache-2.0
 * Telling the story of a run: levels, and a sink that the caller sets (the library itself never
 * prints). */
#ifndef LACI_BASE_LOG_H
#define LACI_BASE_LOG_H

#include "lacuna/log.h"

/** printf-style line (no newline) to the sink, if the level is wanted. Any thread. */
void laci_log(lac_log_level level, const char *format, ...) LAC_PRINTF(2, 3);
bool laci_log_wanted(lac_log_level level);

/** Progress of a long job, 0..total; cheap to call often; the sink decides what to show. Any
 * thread. */
void laci_progress(const char *what, int64_t done, int64_t total);

/** True once the user asked to stop (lac_interrupt): long jobs look at it now and then. */
bool laci_interrupted(void);

#endif
