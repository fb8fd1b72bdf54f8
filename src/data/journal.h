/* SPDX-License-Identifier: Apache-2.0
 * What a conversion has done so far, in a small text file next to the shards, so that a run that
 * was interrupted, however, goes on after the last whole shard:
 *
 *     lacuna imagenet 1 0123456789abcdef          of the images, their labels, the options
 *     broken train-00003-of-01024 NAME<TAB>why
 *     shard train-00003-of-01024 1250             images in it
 *
 * A shard and the broken images before its line are appended at once; what is after the last whole
 * line of a shard does not count. */
#ifndef LACI_DATA_JOURNAL_H
#define LACI_DATA_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "lacuna/status.h"

#define LACI_JOURNAL_NAME ".lacuna-imagenet"

/** A finished shard. */
typedef struct laci_journal_shard {
  const char *name;
  int64_t images, broken;
  const char *broken_lines; /* "NAME<TAB>why\n" for each; "": none */
} laci_journal_shard;

typedef struct laci_journal laci_journal;

/** Opens the journal of the folder, which is the caller's alone, or begins one. Fails LAC_EXISTS
 * where it is of another conversion, LAC_BAD_FILE, LAC_IO, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_journal_open(const char *folder, uint64_t fingerprint,
                                            laci_journal **journal, lac_error *err);
/** NULL is fine. */
void laci_journal_close(laci_journal *journal);

/** The shard of that name, where it is finished; NULL: it is not. A view until the journal closes;
 * not while others add. */
const laci_journal_shard *laci_journal_find(const laci_journal *journal, const char *shard);
/** Adds a finished shard; what it holds is copied. One thread at a time. Fails LAC_IO,
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_journal_add(laci_journal *journal, const laci_journal_shard *shard,
                                           lac_error *err);

#endif
