/* SPDX-License-Identifier: Apache-2.0
 * Temporary storage on disk for computed bytes that are too many for memory: they are in a file
 * without a name, which is removed with the process, however it ends, and are read through a
 * mapping.
 *
 * The system drops pages of the mapping when memory is needed, and reads them again. No other
 * program can truncate a file without a name, so that such a mapping, unlike one of a model's file
 * (base/reader.h), is safe. Runs of zeros take no disk space where the file system supports holes.
 * One thread writes; any thread reads. */
#ifndef LACI_BASE_SPILL_H
#define LACI_BASE_SPILL_H

#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_spill laci_spill;

/** Creates a spill, a temporary file, in a folder with enough space. folder NULL: TMPDIR of the
 * environment, else /var/tmp, which is on a disk where /tmp may be memory. Fails LAC_IO,
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_spill_create(const char *folder, laci_spill **spill, lac_error *err);
/** Removes the file; views become invalid. NULL is fine. */
void laci_spill_destroy(laci_spill *spill);

/** Writes n bytes to the file. *view: where they can be read, but not written, from now on. name:
 * used in messages: "w1: cannot write to a temporary file in /var/tmp: No space left on device".
 * Fails LAC_IO, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_spill_append(laci_spill *spill, const char *name, const void *bytes,
                                            size_t n, const uint8_t **view, lac_error *err);

/** Lets the system free the memory that reading a view took; the view may be read again. */
void laci_spill_release_view(const uint8_t *view, size_t n);

/** Adds the spill `take` to a linked list of spills, whose head is *all (at first NULL).
 * laci_spill_destroy of *all destroys the whole list. */
void laci_spill_add_to_list(laci_spill **all, laci_spill *take);

/** Returns the bytes written so far. */
uint64_t laci_spill_size_bytes(const laci_spill *spill);

#endif
