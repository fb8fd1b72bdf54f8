/* SPDX-License-Identifier: Apache-2.0
 * Bytes that are made before they can be used, and are too many for memory: they are in a file
 * without a name, which ends with the process, however that ends, and are read through a mapping.
 *
 * Pages of the mapping are the file's: the system drops them when memory is wanted, and reads them
 * again. No other program can cut a file that has no name, so that a mapping of it, unlike one of a
 * model's file (base/reader.h), cannot lose its bytes. Stretches of zeros take no space on disk
 * where the file system can have holes. One thread puts; any thread reads. */
#ifndef LACI_BASE_SPILL_H
#define LACI_BASE_SPILL_H

#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_spill laci_spill;

/** In a folder with enough space; NULL: TMPDIR of the environment, else /var/tmp,
 * which is on a disk where /tmp may be memory. Fails LAC_IO, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_spill_create(const char *folder, laci_spill **spill, lac_error *err);
/** What was put there is no more. NULL is fine. */
void laci_spill_destroy(laci_spill *spill);

/** Puts n bytes there; *view is where they can be read (never written) from now on. name: what they
 * are, for messages: "w1: cannot write to a temporary file in /var/tmp: No space left on device".
 * Fails LAC_IO, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_spill_put(laci_spill *spill, const char *name, const void *bytes,
                                         size_t n, const uint8_t **view, lac_error *err);

/** Lets go of the memory that reading a view took; it may be read again. */
void laci_spill_release(const uint8_t *view, size_t n);

/** Adds a spill to those that an owner has: *all is the last one, NULL at first; laci_spill_destroy
 * of it destroys all of them. */
void laci_spill_keep(laci_spill **all, laci_spill *take);

/** Bytes put so far. */
uint64_t laci_spill_bytes(const laci_spill *spill);

#endif
