/* SPDX-License-Identifier: Apache-2.0
 * Temporary files, and what becomes of them when their process ends.
 *
 * A temporary name is made of a hash of the final name and a number, so that the next writer of
 * that name finds what a killed process left. The file is locked (flock) by the process that writes
 * it: what can be locked is dead and goes, what cannot is left alone. Locks end with their process,
 * however it ends, in a container as outside. Where the file system knows no locks, what no one has
 * written to for an hour is dead. */
#ifndef LACI_BASE_TEMPORARY_H
#define LACI_BASE_TEMPORARY_H

#include <stdbool.h>

enum { LACI_TEMPORARY_NAME = 48 }; /* bytes of a name, the final zero among them */

/* ---- Temporary names ---- */

/** Makes the temporary file for a file that is to be called `name` (without a folder), with the
 * permissions that umask leaves, open to write and locked; removes those of dead processes for the
 * same name. folder: a descriptor, or AT_FDCWD and `prefix`, which is put before all names: "" or
 * up to a slash. Returns the descriptor and fills temporary; -1 and errno. */
int laci_temporary_create(int folder, const char *prefix, const char *name,
                          char temporary[LACI_TEMPORARY_NAME]);

/** A name of that kind for a second name of the file (laci_writer_second_name): number 0 to 9. They
 * are not removed with the temporary ones, since a file may refer to them. */
void laci_second_name(const char *name, int number, char second[LACI_TEMPORARY_NAME]);

/** Removes a file, or a folder with the files in it and in its folders, where its process is dead.
 * path: as openat takes it. True: it is gone, or was not there. */
bool laci_dead_remove(int folder, const char *path);

/** All that is temporary in a folder and dead: for a folder that is the caller's alone. */
void laci_dead_sweep(int folder);

/** A new folder in `parent`, locked as temporary files are, after those of dead processes are
 * removed; its path is put at `path` (size bytes). Returns the descriptor that holds the lock; -1
 * and errno. */
int laci_temporary_folder(const char *parent, char *path, int size);
/** Removes it with what is in it, and closes the descriptor. */
void laci_temporary_folder_remove(const char *path, int fd);

/** A file without a name, to write and read, in a folder: it is gone when its descriptor is closed,
 * however the process ends. Returns the descriptor; -1 and errno. */
int laci_temporary_nameless(const char *folder);

/* ---- The end of the process at a signal ---- */

/** Notes a file or folder that is to go if the process ends before laci_temporary_unregister; -1
 * where there are too many (64) or the path is too long. Writers do so themselves. Any thread. */
int laci_temporary_register(const char *path);
/** It stays, or is gone already. -1 is fine. */
void laci_temporary_unregister(int entry);
/** Removes all that is noted, folders where they are empty. Safe in a signal handler. */
void laci_temporaries_remove(void);

#endif
