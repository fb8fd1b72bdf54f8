/* SPDX-License-Identifier: Apache-2.0
 * Temporary files, and their removal when their process ends.
 *
 * A temporary name consists of a hash of the final name and a number, so that the next writer of
 * that name finds files of a killed process. The writing process locks the file (flock). A file
 * that can be locked belongs to a dead process and is removed; others are left alone. Locks end
 * with their process, however it ends, also in containers. On a file system without locks, a file
 * that has not been written for an hour counts as dead. */
#ifndef LACI_BASE_TEMPORARY_H
#define LACI_BASE_TEMPORARY_H

#include <stdbool.h>

enum { LACI_TEMPORARY_NAME = 48 }; /* size in bytes of a temporary name, with the final zero */

/* ---- Temporary names ---- */

/** Creates a temporary file for a file whose final name is `name` (without a folder). It has the
 * permissions of umask, is open for writing and locked. Removes temporary files that dead processes
 * left for the same name. folder: a descriptor, or AT_FDCWD; then `prefix`, "" or a path with its
 * final slash, is put before all names. Returns the descriptor and writes the name to `temporary`;
 * -1 and errno on failure. */
int laci_temporary_create_file(int folder, const char *prefix, const char *name,
                               char temporary[LACI_TEMPORARY_NAME]);

/** Writes to `second` the file's second name (a hard link, laci_writer_second_name) with that
 * number, 0 to 9, in the form of a temporary name. Second names are not removed like temporary
 * ones, since a file may refer to them. */
void laci_format_second_name(const char *name, int number, char second[LACI_TEMPORARY_NAME]);

/** Removes a file, or a folder with all its content, if the process that created it is dead. path:
 * as for openat. True: it was removed, or did not exist. */
bool laci_remove_if_owner_is_dead(int folder, const char *path);

/** Removes all temporary files of dead processes in a folder that only the caller uses. */
void laci_remove_files_of_dead_owners(int folder);

/** Removes temporary folders that dead processes left in `parent`, and creates a new one there,
 * locked like temporary files. Writes its path to `path` (size bytes). Returns the descriptor that
 * holds the lock; -1 and errno on failure. */
int laci_temporary_create_folder(const char *parent, char *path, int size);
/** Removes a folder of laci_temporary_create_folder with its content, and closes the descriptor. */
void laci_temporary_remove_folder(const char *path, int fd);

/** Creates a file without a name in a folder, for writing and reading. It is removed when its
 * descriptor is closed, however the process ends. Returns the descriptor; -1 and errno on
 * failure. */
int laci_temporary_open_nameless(const char *folder);

/* ---- The end of the process at a signal ---- */

/** Registers a file or folder to be removed if a signal ends the process before
 * laci_temporary_unregister. Returns the number of its entry in the registry; -1 if the registry is
 * full (64 entries) or the path is too long. Writers call it themselves. Callable from any
 * thread. */
int laci_temporary_register(const char *path);
/** Unregisters an entry, whose file will stay or was removed already. -1: does nothing. */
void laci_temporary_unregister(int entry);
/** Removes all registered files, and registered folders if they are empty. Safe in a signal
 * handler. */
void laci_temporary_remove_registered(void);

#endif
