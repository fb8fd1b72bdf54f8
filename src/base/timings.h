/* SPDX-License-Identifier: Apache-2.0
 * Times that were measured on a machine, by name, kept in a file from one process to the next.
 *
 * It is a cache: a file that is not there, is broken, or is of another version or machine holds
 * nothing, and is replaced. */
#ifndef LACI_BASE_TIMINGS_H
#define LACI_BASE_TIMINGS_H

#include <stdbool.h>

#include "lacuna/status.h"

typedef struct laci_timings laci_timings;

/** What `path` holds for `machine` (a text without a meaning here). path NULL: nothing, and nothing
 * will be written. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_timings_open(const char *path, const char *machine,
                                            laci_timings **timings, lac_error *err);
/** NULL is fine. What was not saved is lost. */
void laci_timings_close(laci_timings *timings);

bool laci_timings_find(const laci_timings *timings, const char *name, double *seconds);
/** An older time of that name goes. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_timings_set(laci_timings *timings, const char *name, double seconds,
                                           lac_error *err);
/** Writes the file if something was set; folders of its path are made. Fails LAC_IO, LAC_NO_MEMORY:
 * the file is then as it was. */
LAC_MUST_CHECK lac_status laci_timings_save(laci_timings *timings, lac_error *err);

#endif
