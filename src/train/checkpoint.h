/* SPDX-License-Identifier: Apache-2.0
 * Checkpoint files: named sections of bytes under one checksum, written atomically. So a file with
 * a checkpoint's name is complete, or was damaged later, which the checksum detects.
 *
 *     folder/checkpoint-000000000391.lac, little-endian:
 *     "LACUNAck"  version u32  n u32  size of the file u64  step i64  0 u64
 *     n times: name, 32 bytes, zero-filled  offset u64  size u64
 *     the sections, each at a multiple of 64, zeros between     hash u64
 *
 * The hash is XXH3 of header and table; this is the seed for hashing the first section, whose hash
 * is the seed for the next one, and so on. Next: snapshot.h, the content of a training's
 * checkpoint. */
#ifndef LACI_TRAIN_CHECKPOINT_H
#define LACI_TRAIN_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

enum { LACI_CHECKPOINT_MAX_SECTIONS = 64, LACI_CHECKPOINT_NAME = 31 };

typedef struct laci_section {
  const char *name; /* 1..31 bytes, unique in the file */
  const void *bytes;
  size_t size_bytes;
} laci_section;

/** Writes the checkpoint of a step (>= 0) into the folder, which must exist; one of the same step
 * is replaced. Then removes the oldest ones until `keep` (>= 1) are left, and temporary files of an
 * interrupted writer. Nothing is removed before the new one is completely on disk. Fails as a
 * writer does (base/file.h), LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status laci_checkpoint_write(const char *folder, int64_t step,
                                                const laci_section *sections, int n, int keep,
                                                lac_error *err);

/** A checkpoint that was read completely and checked. */
typedef struct laci_checkpoint laci_checkpoint;

/** Reads a checkpoint. Fails LAC_BAD_FILE for a file that is no checkpoint, is cut off or damaged,
 * saying which; LAC_UNSUPPORTED for another version; LAC_NOT_FOUND, LAC_IO, LAC_NO_MEMORY. No
 * allocation has a size that the file claims. */
LAC_MUST_CHECK lac_status laci_checkpoint_open(const char *path, laci_checkpoint **checkpoint,
                                               lac_error *err);
/** Opens the newest undamaged checkpoint of a folder; damaged ones are skipped (and logged). Fails
 * LAC_NOT_FOUND where there is none at all; where all are damaged, with the newest one's error. */
LAC_MUST_CHECK lac_status laci_checkpoint_open_newest(const char *folder,
                                                      laci_checkpoint **checkpoint, lac_error *err);
void laci_checkpoint_close(laci_checkpoint *checkpoint); /* NULL is fine */

const char *laci_checkpoint_path(const laci_checkpoint *checkpoint);
int64_t laci_checkpoint_step(const laci_checkpoint *checkpoint);
/** Finds a section; its bytes are a view, 64-byte aligned. Fails LAC_BAD_FILE where it is
 * missing. */
LAC_MUST_CHECK lac_status laci_checkpoint_find_section(const laci_checkpoint *checkpoint,
                                                       const char *name, laci_section *section,
                                                       lac_error *err);

#endif
