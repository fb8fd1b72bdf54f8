/* SPDX-License-Identifier: Apache-2.0
 * Reading small texts, and the parts of a path. Reading everything else: reader.h; writing:
 * writer.h. */
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

/** The whole of a text file of at most max_bytes; *text is zero-terminated, the caller's
 * (laci_free). Pipes are read, too, if a writer comes within a second. Fails LAC_BAD_FILE
 * where it is longer, holds a zero byte or is a pipe without a writer. */
LAC_MUST_CHECK lac_status laci_file_read_text(const char *path, size_t max_bytes, char **text,
                                              lac_error *err);

/** Length of the folder part of path, without the final slash ("" for a name alone, "/" stays). */
size_t laci_path_folder(const char *path);

#endif
