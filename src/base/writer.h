/* SPDX-License-Identifier: Apache-2.0
 * Writing files so that a reader sees the old file or the new one, never half of it.
 *
 * A writer fills a temporary file next to its target. finish() makes it complete and durable.
 * commit() adds it to the set of files that is open on this thread, whose end renames it
 * (base/file_set.h), or renames it at once where none is open. A writer that is destroyed before
 * that leaves no file, and neither does a process that calls laci_temporary_remove_registered when
 * a signal ends it. Files left by a killed process are removed by the next writer of the same name
 * (base/temporary.h). */
#ifndef LACI_BASE_WRITER_H
#define LACI_BASE_WRITER_H

#include <stdbool.h>
#include <stddef.h>

#include "lacuna/status.h"

typedef struct laci_file_id laci_file_id;

/** How a writer writes its file, and which existing files it may replace. */
typedef struct laci_write_options {
  bool force;               /* replace an existing regular file; false: opening then fails
                               LAC_EXISTS */
  bool holes;               /* runs of zeros take no disk space, if the file system supports it */
  const laci_file_id *keep; /* [n_keep] files that are never replaced, even with force, since they
                               are inputs */
  size_t n_keep;
} laci_write_options;

typedef struct laci_writer laci_writer;

/** Opens a writer. Fails LAC_EXISTS where the file exists and `force` is not set, LAC_BAD_ARGUMENT
 * for a target that is in `keep` or is no regular file. */
LAC_MUST_CHECK lac_status laci_writer_open(const char *path, const laci_write_options *options,
                                           laci_writer **writer, lac_error *err);
/** Opens a writer like laci_writer_open, for a file `name` in an open folder, even if the folder's
 * path changes. The descriptor is borrowed until the file is renamed. shown: the file's path for
 * error texts. */
LAC_MUST_CHECK lac_status laci_writer_open_at(int folder, const char *name, const char *shown,
                                              const laci_write_options *options,
                                              laci_writer **writer, lac_error *err);
LAC_MUST_CHECK lac_status laci_writer_append(laci_writer *writer, const void *bytes,
                                             size_t size_bytes, lac_error *err);
/** Flushes and syncs the file, which still has its temporary name. */
LAC_MUST_CHECK lac_status laci_writer_finish(laci_writer *writer, lac_error *err);
/** Commits the finished file: it gets its final name now, or at the end of the open set of files.
 * Without force, a file that was created under the name meanwhile is kept (LAC_EXISTS, here or at
 * the end of the set). */
LAC_MUST_CHECK lac_status laci_writer_commit(laci_writer *writer, lac_error *err);
/** Makes a second name (laci_file_set_add_second_name) for a finished file that is not committed
 * yet. */
LAC_MUST_CHECK lac_status laci_writer_second_name(laci_writer *writer, char **name, lac_error *err);
/** Removes the temporary file where it was not committed. NULL is fine. */
void laci_writer_destroy(laci_writer *writer);

/** Writes a whole file from bytes in memory. */
LAC_MUST_CHECK lac_status laci_file_write(const char *path, const void *bytes, size_t size_bytes,
                                          bool force, lac_error *err);
/** Writes a whole file like laci_file_write, in an open folder; an existing file is replaced. */
LAC_MUST_CHECK lac_status laci_file_write_at(int folder, const char *name, const char *shown,
                                             const void *bytes, size_t size_bytes, lac_error *err);

#endif
