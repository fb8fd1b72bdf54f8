/* SPDX-License-Identifier: Apache-2.0
 * Temporary folders for a few files, in $TMPDIR or /tmp. */
#ifndef LACI_API_PACK_SCRATCH_H
#define LACI_API_PACK_SCRATCH_H

#include <limits.h>
#include <stdbool.h>

#include "lacuna/status.h"

/** A temporary folder; zero-initialized there is none. */
typedef struct laci_scratch {
  char folder[PATH_MAX];
  int lock; /* descriptor that locks the folder; valid if there is a folder */
} laci_scratch;

LAC_MUST_CHECK lac_status laci_scratch_create(laci_scratch *scratch, lac_error *err);
/** Writes the path of a file in the folder. Fails LAC_UNSUPPORTED if it is too long. */
LAC_MUST_CHECK lac_status laci_scratch_path(const laci_scratch *scratch, const char *name,
                                            char path[PATH_MAX], lac_error *err);
/** Replaces paths in the folder in the error's text by "a temporary copy in /tmp, NAME". */
void laci_scratch_hide_paths(const laci_scratch *scratch, lac_error *err);
/** Removes the files and the folder; open files stay readable. Does nothing if there is no folder.
 */
void laci_scratch_remove(laci_scratch *scratch);

#endif
