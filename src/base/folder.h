/* SPDX-License-Identifier: Apache-2.0
 * Finds the files of a folder by a pattern of their names, such as "checkpoint-*.lac". */
#ifndef LACI_BASE_FOLDER_H
#define LACI_BASE_FOLDER_H

#include <stdbool.h>

#include "lacuna/status.h"

/** Does the folder hold a file whose name matches the pattern? False also if the folder cannot be
 * read. */
bool laci_folder_has_match(const char *folder, const char *pattern);
/** Removes the folder's files whose names match the pattern. A missing folder counts as empty.
 * Fails LAC_IO. */
LAC_MUST_CHECK lac_status laci_folder_remove_matching(const char *folder, const char *pattern,
                                                      lac_error *err);

/** Opens a descriptor of a folder: files opened relative to it are in this folder even if its path
 * changes. Fails LAC_NOT_FOUND, LAC_IO. */
LAC_MUST_CHECK lac_status laci_folder_enter(const char *path, int *folder, lac_error *err);
/** Opens the regular file `name` in the folder, but follows no link; flags as for openat. shown:
 * the file's path for error texts. Fails LAC_NOT_FOUND, LAC_BAD_FILE for anything but a regular
 * file, LAC_IO. */
LAC_MUST_CHECK lac_status laci_folder_open_file(int folder, const char *name, const char *shown,
                                                int flags, int *fd, lac_error *err);
/** Is the path a link? */
bool laci_path_is_link(const char *path);

/** Locks the folder until laci_folder_unlock or the end of the process. The lock creates no file.
 * *lock is -1 if the folder cannot be opened or its file system has no locks; the caller then
 * continues without a lock. Fails LAC_EXISTS if another process holds the lock. */
LAC_MUST_CHECK lac_status laci_folder_lock(const char *folder, int *lock, lac_error *err);
/** Releases a lock of laci_folder_lock; does nothing for -1. */
void laci_folder_unlock(int lock);

#endif
