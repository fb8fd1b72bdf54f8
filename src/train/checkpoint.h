/* SPDX-License-Identifier: Apache-2.0
 * Reads and writes checkpoint files: named sections of bytes under one checksum, written
 * atomically. So a file with a checkpoint's name is complete, or was damaged later, which the
 * checksum detects.
 *
 *     folder/checkpoint-000000000391.lac, little-endian:
 *     "LACUNAck"  version u32  n u32  size of the file u64  step i64  0 u64
 *     n times: name, 32 bytes, zero-filled  offset u64  size u64
 *     the sections, each at a multiple of 64, zeros between     hash u64
 *
 * The hash is computed by XXH3. That of the header and the table is the seed for hashing the first
 * section, whose hash is the seed for the next one, and so on. Next: snapshot.h, the content of a
 * training's checkpoint. */
#ifndef LACI_TRAIN_CHECKPOINT_H
#define LACI_TRAIN_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

enum { LACI_CHECKPOINT_MAX_SECTIONS = 64, LACI_CHECKPOINT_NAME = 31 };

typedef struct laci_section {
  const char *name; /* name of the section, 1 to 31 bytes, unique in the file */
  const void *bytes;
  size_t size_bytes;
} laci_section;

/** Writes the checkpoint of a step (>= 0) into the folder, which must exist. It replaces one of the
 * same step. Then removes the oldest checkpoints until `keep` (>= 1) are left, and temporary files
 * of an interrupted writer. Nothing is removed before the new checkpoint is completely on disk.
 * Fails as a writer does (base/file.h), or with LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status laci_checkpoint_write(const char *folder, int64_t step,
                                                const laci_section *sections, int n, int keep,
                                                lac_error *err);

/** A checkpoint file that was read completely and checked. */
typedef struct laci_checkpoint laci_checkpoint;

/** Reads a checkpoint file. Fails with LAC_BAD_FILE if the file is no checkpoint, is cut off or is
 * damaged (the text says which), with LAC_UNSUPPORTED for another version, or with LAC_NOT_FOUND,
 * LAC_IO or LAC_NO_MEMORY. No allocation has a size that the file claims. */
LAC_MUST_CHECK lac_status laci_checkpoint_open(const char *path, laci_checkpoint **checkpoint,
                                               lac_error *err);
/** Opens the latest checkpoint in a folder that is not damaged; damaged ones are skipped and
 * logged. Fails with LAC_NOT_FOUND if the folder has no checkpoint. If all are damaged, fails with
 * the error of the latest. */
LAC_MUST_CHECK lac_status laci_checkpoint_open_newest(const char *folder,
                                                      laci_checkpoint **checkpoint, lac_error *err);
void laci_checkpoint_close(laci_checkpoint *checkpoint); /* checkpoint may be NULL */

const char *laci_checkpoint_path(const laci_checkpoint *checkpoint);
int64_t laci_checkpoint_step(const laci_checkpoint *checkpoint);
/** Finds a section. Its bytes are borrowed, 64-byte aligned. Fails with LAC_BAD_FILE if there is no
 * such section. */
LAC_MUST_CHECK lac_status laci_checkpoint_find_section(const laci_checkpoint *checkpoint,
                                                       const char *name, laci_section *section,
                                                       lac_error *err);

#endif
