/* SPDX-License-Identifier: Apache-2.0
 * Finds the files of a folder by a pattern of their names, such as "checkpoint-*.lac". */
#ifndef LACI_BASE_FOLDER_H
#define LACI_BASE_FOLDER_H

#include <stdbool.h>

#include "lacuna/status.h"

/** Does the folder hold a matching file? False also where it cannot be read. */
bool laci_folder_has(const char *folder, const char *pattern);
/** Removes the matching files. A folder that does not exist holds none. Fails LAC_IO. */
LAC_MUST_CHECK lac_status laci_folder_remove(const char *folder, const char *pattern,
                                             lac_error *err);

/** Opens a descriptor of a folder: files opened relative to it are in this folder even if its path
 * changes. Fails LAC_NOT_FOUND, LAC_IO. */
LAC_MUST_CHECK lac_status laci_folder_enter(const char *path, int *folder, lac_error *err);
/** Opens a regular file of that name in the folder, but no link; flags as for openat. shown: the
 * file's path, for texts of failures. Fails LAC_NOT_FOUND, LAC_BAD_FILE for anything but a regular
 * file, LAC_IO. */
LAC_MUST_CHECK lac_status laci_folder_open_file(int folder, const char *name, const char *shown,
                                                int flags, int *fd, lac_error *err);
/** Is the path a link? */
bool laci_path_is_link(const char *path);

/** Locks the folder until laci_folder_unlock or the end of the process, however it ends; no file is
 * left. *lock is -1 where the folder cannot be opened or its file system has no locks; the caller
 * continues without one. Fails LAC_EXISTS where another process holds the lock. */
LAC_MUST_CHECK lac_status laci_folder_lock(const char *folder, int *lock, lac_error *err);
/** Does nothing for -1. */
void laci_folder_unlock(int lock);

#endif
