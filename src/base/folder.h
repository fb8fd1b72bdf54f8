/* SPDX-License-Identifier: Apache-2.0
 * The files of a folder by a pattern of their names, such as "checkpoint-*.lac". */
#ifndef LACI_BASE_FOLDER_H
#define LACI_BASE_FOLDER_H

#include <stdbool.h>

#include "lacuna/status.h"

/** Is there any? False where the folder cannot be read, too. */
bool laci_folder_has(const char *folder, const char *pattern);
/** Removes them. A folder that is not there holds none. Fails LAC_IO. */
LAC_MUST_CHECK lac_status laci_folder_remove(const char *folder, const char *pattern,
                                             lac_error *err);

/** A descriptor of a folder: what is opened relative to it is in this folder, wherever its path
 * leads meanwhile. Fails LAC_NOT_FOUND, LAC_IO. */
LAC_MUST_CHECK lac_status laci_folder_enter(const char *path, int *folder, lac_error *err);
/** Opens a regular file of that name in it, and no link; flags as openat takes them. shown: its
 * path, for the texts of failures. Fails LAC_NOT_FOUND, LAC_BAD_FILE for what is no regular file,
 * LAC_IO. */
LAC_MUST_CHECK lac_status laci_folder_open_file(int folder, const char *name, const char *shown,
                                                int flags, int *fd, lac_error *err);
/** Is the path a link? */
bool laci_path_is_link(const char *path);

/** The folder is the caller's until laci_folder_unlock, or until the program ends, however it does:
 * no file is left. *lock: -1 where the folder cannot be opened or its file system knows no
 * locks; the caller goes on without. Fails LAC_EXISTS where another process holds it. */
LAC_MUST_CHECK lac_status laci_folder_lock(const char *folder, int *lock, lac_error *err);
/** Of -1: nothing. */
void laci_folder_unlock(int lock);

#endif
