/* SPDX-License-Identifier: Apache-2.0
 * Reads small text files, and splits paths. For other reading see reader.h; for writing,
 * writer.h. */
#ifndef LACI_BASE_FILE_H
#define LACI_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

/** Identifies a file independently of its path. */
typedef struct laci_file_id {
  uint64_t device, inode;
} laci_file_id;

/** Reads a text file of at most max_bytes. *text is zero-terminated; the caller frees it
 * (laci_free). A pipe is read, too, if a writer appears within a second. Fails LAC_BAD_FILE where
 * the file is longer, contains a zero byte or is a pipe without a writer. */
LAC_MUST_CHECK lac_status laci_file_read_text(const char *path, size_t max_bytes, char **text,
                                              lac_error *err);

/** Returns the length of the folder part of path, without the final slash ("" for a name alone; "/"
 * keeps its slash). */
size_t laci_path_folder_length(const char *path);

#endif
