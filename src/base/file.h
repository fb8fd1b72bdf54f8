/* SPDX-License-Identifier: Apache-2.0
 * Files: writing them so that a reader sees the old file or the new one, never half of it; and
 * reading small texts. Reading everything else: reader.h.
 *
 * A writer fills a temporary file beside its target. finish() makes it complete and durable,
 * commit() gives it its name; a writer that is destroyed before that leaves nothing behind, and
 * neither does a process that calls laci_leftovers_remove when a signal ends it. A command with
 * several outputs finishes all of them before it commits the first. */
#ifndef LACI_BASE_FILE_H
#define LACI_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

/** Which file it is, whatever it is called. */
typedef struct laci_file_id {
  uint64_t device, inode;
} laci_file_id;

/** The whole of a text file (or pipe) of at most max_bytes; *text is zero-terminated, the caller's
 * (laci_free). Fails LAC_BAD_FILE where it is longer or holds a zero byte. */
LAC_MUST_CHECK lac_status laci_file_read_text(const char *path, size_t max_bytes, char **text,
                                              lac_error *err);

/** What a writer may do to a file that exists. */
typedef struct laci_write_options {
  bool force;               /* replace an existing regular file; else that is LAC_EXISTS */
  const laci_file_id *keep; /* files that are never replaced, even with force: inputs */
  size_t n_keep;
} laci_write_options;

typedef struct laci_writer laci_writer;

/** Fails LAC_EXISTS for a taken name, LAC_BAD_ARGUMENT for a target that is to be kept or is no
 * regular file. */
LAC_MUST_CHECK lac_status laci_writer_open(const char *path, const laci_write_options *options,
                                           laci_writer **writer, lac_error *err);
LAC_MUST_CHECK lac_status laci_writer_append(laci_writer *writer, const void *bytes,
                                             size_t size_bytes, lac_error *err);
/** Writes out, syncs and closes; the file still has its temporary name. */
LAC_MUST_CHECK lac_status laci_writer_finish(laci_writer *writer, lac_error *err);
/** Gives the finished file its name. Without force, a file that has taken the name meanwhile
 * survives (LAC_EXISTS). */
LAC_MUST_CHECK lac_status laci_writer_commit(laci_writer *writer, lac_error *err);
/** Takes a commit back, as long as it made a new file; what it replaced is gone. For a later output
 * that failed. */
void laci_writer_retract(laci_writer *writer);
/** Removes the temporary file where it was not committed. NULL is fine. */
void laci_writer_destroy(laci_writer *writer);

/* ---- The end of the process at a signal ---- */

/** Notes a file or folder that is to go if the process ends before laci_leftover_drop; -1 where
 * there are too many (64) or the path is too long. Writers do so themselves. Any thread. */
int laci_leftover_add(const char *path);
/** It stays, or is gone already. -1 is fine. */
void laci_leftover_drop(int leftover);
/** Removes all that is noted, folders where they are empty. Safe in a signal handler. */
void laci_leftovers_remove(void);

/* ---- Whole files ---- */

/** All of the above for bytes that are at hand. */
LAC_MUST_CHECK lac_status laci_file_write(const char *path, const void *bytes, size_t size_bytes,
                                          bool force, lac_error *err);

/** Length of the folder part of path, without the final slash ("" for a bare name, "/" stays). */
size_t laci_path_folder(const char *path);

#endif
