/* SPDX-License-Identifier: Apache-2.0
 * Times that were measured on a machine, by name, kept in a file for later processes.
 *
 * The file is a cache: if it is missing, damaged, or of another version or machine, it counts as
 * empty and is replaced. */
#ifndef LACI_BASE_TIMINGS_H
#define LACI_BASE_TIMINGS_H

#include <stdbool.h>

#include "lacuna/status.h"

typedef struct laci_timings laci_timings;

/** Reads from the file `path` the times that were measured on `machine` (any text that identifies a
 * machine). path NULL: there are none, and nothing will be written. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_timings_open(const char *path, const char *machine,
                                            laci_timings **timings, lac_error *err);
/** Frees the timings; unsaved times are lost. NULL is fine. */
void laci_timings_close(laci_timings *timings);

bool laci_timings_find(const laci_timings *timings, const char *name, double *seconds);
/** Sets the time that is stored under a name; replaces an older one. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_timings_set(laci_timings *timings, const char *name, double seconds,
                                           lac_error *err);
/** Writes all times to the file, if a time was set since it was read or written; creates the
 * folders of its path. Fails LAC_IO, LAC_NO_MEMORY: the file is then unchanged. */
LAC_MUST_CHECK lac_status laci_timings_save(laci_timings *timings, lac_error *err);

#endif
