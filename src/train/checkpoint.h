/* SPDX-License-Identifier: Apache-2.0
 * Checkpoint files: named sections of bytes under one checksum, written in one step, so that a file
 * with a checkpoint's name is whole or was damaged later, and that shows.
 *
 *     folder/checkpoint-000000000391.lac, little-endian:
 *     "LACUNAck"  version u32  n u32  size of the file u64  step i64  0 u64
 *     n times: name, 32 bytes, zero-filled  offset u64  size u64
 *     the sections, each at a multiple of 64, zeros between     hash u64
 *
 * The hash is XXH3 of header and table, which is the seed of that of the first section, and so on.
 * Next: snapshot.h, what training puts into them. */
#ifndef LACI_TRAIN_CHECKPOINT_H
#define LACI_TRAIN_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

enum { LACI_CHECKPOINT_MAX_SECTIONS = 64, LACI_CHECKPOINT_NAME = 31 };

typedef struct laci_section {
  const char *name; /* 1..31 bytes, each section another one */
  const void *bytes;
  size_t size_bytes;
} laci_section;

/** Writes the checkpoint of a step (>= 0) into the folder, which is there; one of the same step is
 * replaced. Then removes the oldest ones until `keep` (>= 1) are left, and what an interrupted
 * writer left. Until the new one is whole on disk nothing is removed. Fails as a writer
 * does (base/file.h), LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status laci_checkpoint_write(const char *folder, int64_t step,
                                                const laci_section *sections, int n, int keep,
                                                lac_error *err);

/** A checkpoint that was read, wholly, and checked. */
typedef struct laci_checkpoint laci_checkpoint;

/** Fails LAC_BAD_FILE for what is no checkpoint, cut off or damaged, saying which; LAC_UNSUPPORTED
 * for another version; LAC_NOT_FOUND, LAC_IO, LAC_NO_MEMORY. Allocates nothing of a size that the
 * file says. */
LAC_MUST_CHECK lac_status laci_checkpoint_open(const char *path, laci_checkpoint **checkpoint,
                                               lac_error *err);
/** The newest whole one of a folder; what is damaged is passed over (and logged). Fails
 * LAC_NOT_FOUND where there is none at all; where all are damaged, with the newest one's error. */
LAC_MUST_CHECK lac_status laci_checkpoint_newest(const char *folder, laci_checkpoint **checkpoint,
                                                 lac_error *err);
void laci_checkpoint_close(laci_checkpoint *checkpoint); /* NULL is fine */

const char *laci_checkpoint_path(const laci_checkpoint *checkpoint);
int64_t laci_checkpoint_step(const laci_checkpoint *checkpoint);
/** The section's bytes, 64-byte aligned; a view. Fails LAC_BAD_FILE where it is missing. */
LAC_MUST_CHECK lac_status laci_checkpoint_section(const laci_checkpoint *checkpoint,
                                                  const char *name, laci_section *section,
                                                  lac_error *err);

#endif
