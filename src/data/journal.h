/* SPDX-License-Identifier: Apache-2.0
 * The progress of a conversion, in a small text file next to the shards, so that an interrupted run
 * can continue after the last complete shard:
 *
 *     lacuna imagenet 1 0123456789abcdef          hash of images, labels and options
 *     broken train-00003-of-01024 NAME<TAB>why
 *     shard train-00003-of-01024 1250             number of images in the shard
 *
 * The lines of a shard's broken images and the shard's own line are appended at once. Lines after
 * the last complete shard line are ignored. */
#ifndef LACI_DATA_JOURNAL_H
#define LACI_DATA_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/status.h"

#define LACI_JOURNAL_NAME ".lacuna-imagenet"

/** A finished shard. */
typedef struct laci_journal_shard {
  const char *name;
  int64_t images, broken;
  const char *broken_lines; /* a line "NAME<TAB>why\n" for each broken image; "": there are none */
} laci_journal_shard;

typedef struct laci_journal laci_journal;

/** Opens or creates the journal of a folder that no other process uses. fingerprint: a hash of
 * images, labels and options. Fails LAC_EXISTS if the journal belongs to another conversion,
 * LAC_BAD_FILE, LAC_IO, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_journal_open(const char *folder, uint64_t fingerprint,
                                            laci_journal **journal, lac_error *err);
/** Closes the journal and its file; NULL is fine. */
void laci_journal_close(laci_journal *journal);

/** Returns the finished shard of that name; NULL: it is not finished. The result is a view that is
 * valid until the journal is closed. Do not call it while another thread adds shards. */
const laci_journal_shard *laci_journal_find(const laci_journal *journal, const char *shard);
/** Adds a finished shard, whose content is copied. One thread at a time. Fails LAC_IO,
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_journal_add(laci_journal *journal, const laci_journal_shard *shard,
                                           lac_error *err);

#endif
