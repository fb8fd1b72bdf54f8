/* SPDX-License-Identifier: Apache-2.0
 * Writing files so that a reader sees the old file or the new one, never half of it.
 *
 * A writer fills a temporary file next to its target. finish() makes it complete and durable,
 * commit() hands it to the set of files that is open on this thread, whose end gives it its name
 * (base/file_set.h); where none is open, at once. A writer that is destroyed before that leaves
 * no file, and neither does a process that calls laci_temporaries_remove when a signal ends
 * it. What a killed one leaves, the next writer of the same name removes (base/temporary.h). */
#ifndef LACI_BASE_WRITER_H
#define LACI_BASE_WRITER_H

#include <stdbool.h>
#include <stddef.h>

#include "lacuna/status.h"

typedef struct laci_file_id laci_file_id;

/** What a writer may do to a file that exists. */
typedef struct laci_write_options {
  bool force;               /* replace an existing regular file; else that is LAC_EXISTS */
  bool holes;               /* stretches of zeros take no space, where the file system can */
  const laci_file_id *keep; /* files that are never replaced, even with force: inputs */
  size_t n_keep;
} laci_write_options;

typedef struct laci_writer laci_writer;

/** Fails LAC_EXISTS for a taken name, LAC_BAD_ARGUMENT for a target that is to be kept or is no
 * regular file. */
LAC_MUST_CHECK lac_status laci_writer_open(const char *path, const laci_write_options *options,
                                           laci_writer **writer, lac_error *err);
/** The same in a folder that is open, wherever its path leads meanwhile. The descriptor is borrowed
 * until the file has its name. shown: the file's path, for the texts of failures. */
LAC_MUST_CHECK lac_status laci_writer_open_at(int folder, const char *name, const char *shown,
                                              const laci_write_options *options,
                                              laci_writer **writer, lac_error *err);
LAC_MUST_CHECK lac_status laci_writer_append(laci_writer *writer, const void *bytes,
                                             size_t size_bytes, lac_error *err);
/** Writes out and syncs; the file still has its temporary name. */
LAC_MUST_CHECK lac_status laci_writer_finish(laci_writer *writer, lac_error *err);
/** Hands the finished file over. Without force, a file that has taken the name meanwhile survives
 * (LAC_EXISTS, here or at the end of the set). */
LAC_MUST_CHECK lac_status laci_writer_commit(laci_writer *writer, lac_error *err);
/** laci_file_set_second_name for a finished file that is not committed yet. */
LAC_MUST_CHECK lac_status laci_writer_second_name(laci_writer *writer, char **name, lac_error *err);
/** Removes the temporary file where it was not committed. NULL is fine. */
void laci_writer_destroy(laci_writer *writer);

/** All of the above for bytes that are at hand. */
LAC_MUST_CHECK lac_status laci_file_write(const char *path, const void *bytes, size_t size_bytes,
                                          bool force, lac_error *err);
/** The same in a folder that is open; what has the name is replaced. */
LAC_MUST_CHECK lac_status laci_file_write_at(int folder, const char *name, const char *shown,
                                             const void *bytes, size_t size_bytes, lac_error *err);

#endif
