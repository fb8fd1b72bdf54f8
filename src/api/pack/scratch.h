/* SPDX-License-Identifier: Apache-2.0
 * A temporary folder with a few files in it: $TMPDIR, or /tmp. */
#ifndef LACI_API_PACK_SCRATCH_H
#define LACI_API_PACK_SCRATCH_H

#include <limits.h>
#include <stdbool.h>

#include "lacuna/status.h"

/** Zero-initialised is none. */
typedef struct laci_scratch {
  char folder[PATH_MAX];
  int lock; /* where there is a folder */
} laci_scratch;

LAC_MUST_CHECK lac_status laci_scratch_create(laci_scratch *scratch, lac_error *err);
/** The path of a file in it. Fails LAC_UNSUPPORTED where that is too long. */
LAC_MUST_CHECK lac_status laci_scratch_path(const laci_scratch *scratch, const char *name,
                                            char path[PATH_MAX], lac_error *err);
/** A failure speaks of the files in it as "a temporary copy in /tmp, NAME". */
void laci_scratch_report(const laci_scratch *scratch, lac_error *err);
/** Removes the files and the folder; what is open stays readable. None is fine. */
void laci_scratch_remove(laci_scratch *scratch);

#endif
