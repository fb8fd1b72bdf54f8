/* SPDX-License-Identifier: Apache-2.0
 * Files that appear together or not at all.
 *
 * While a set is open on a thread, every writer that is committed there (base/writer.h) keeps its
 * complete file under a temporary name until the outermost set ends. The end of this set renames
 * all of them. Files that they replace are kept under the temporary names until all are renamed;
 * after a failure in between, every old file is restored, byte for byte.
 *
 * A process that is killed during the renaming leaves some new and some old files, each complete,
 * renamed in the order of the commits. So a file that names others (a model its data) must be
 * committed after them. A model that replaces one with a data file of the same name is committed
 * twice: first a version that names the new data by a second name (laci_file_set_add_second_name),
 * then the data, then the model itself. So the model and the data that it names belong together
 * whenever the process ends.
 */
#ifndef LACI_BASE_FILE_SET_H
#define LACI_BASE_FILE_SET_H

#include <stdbool.h>
#include <stddef.h>

#include "lacuna/status.h"

typedef enum laci_placing {
  LACI_PLACING_FILE,   /* `temporary` is to be renamed to `path` */
  LACI_PLACING_FOLDER, /* the folder `path` was created for the files of the set, and stays if the
                          set succeeds */
  LACI_PLACING_SECOND, /* `path` is a second name (hard link), which is removed after the
                          renaming */
  LACI_PLACING_HIDDEN  /* the old file `path` is renamed to `temporary` during the renaming, and
                          then removed */
} laci_placing;

/** A file to be renamed at the end of the set. */
typedef struct laci_placement {
  laci_placing kind;
  int folder; /* folder to which both paths are relative; AT_FDCWD, or a borrowed descriptor */
  char *path, *temporary;
  char *shown;    /* path for error texts */
  int fd;         /* descriptor that holds the lock of the temporary file; -1: none */
  int registered; /* number that laci_temporary_register returned for the temporary file; -1: not
                     registered */
  bool force;     /* the file may replace an existing one */
  bool placed;    /* the file has been renamed to `path` */
  bool over;      /* the old file of this name was replaced, and is now called `temporary` */
} laci_placement;

/** An open set of files. The caller allocates it on its stack. */
typedef struct laci_file_set {
  struct laci_file_set *outer;
  laci_placement *files;
  size_t n, capacity;
  bool separate;
} laci_file_set;

/** Opens a set: from now on files committed on this thread are renamed only at its end. */
void laci_file_set_begin(laci_file_set *set);
/** Opens a set whose files are renamed at its own end, even if it is inside another set: for files
 * that are read before the outer set ends. */
void laci_file_set_begin_separate(laci_file_set *set);

/** Ends a set; st: the status of the work. On success the files join the enclosing set, or are
 * renamed if there is none. Otherwise, and on a failure here, no new file is left and all old ones
 * are unchanged. Returns st, or the failure: LAC_EXISTS where a name was taken meanwhile, LAC_IO,
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_file_set_end(laci_file_set *set, lac_status st, lac_error *err);

/** Adds a file to the open set, or renames it at once where none is open. On success takes
 * ownership of what *file holds, and empties it. Fails LAC_NO_MEMORY, and as laci_file_set_end. */
LAC_MUST_CHECK lac_status laci_file_set_add(laci_placement *file, lac_error *err);
/** Adds a complete file `from` to the open set, to be renamed to `to` on the same file system. The
 * file is removed if the set fails. Needs an open set. */
LAC_MUST_CHECK lac_status laci_file_set_add_move(const char *from, const char *to, bool force,
                                                 lac_error *err);
/** Removes the old file `path` before the files added later are renamed: for a model whose data
 * file is replaced, on a file system without second names. Needs an open set. Fails LAC_IO,
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_file_set_hide_old_file(const char *path, lac_error *err);
/** Creates a folder, which is removed if the open set fails; an existing one is fine. Needs an open
 * set. Fails LAC_IO. */
LAC_MUST_CHECK lac_status laci_file_set_make_folder(const char *path, lac_error *err);
/** Makes a second name (hard link) for an added file in the same folder, which is removed after the
 * renaming. *name: the name without the folder, freed by the caller (laci_free); NULL where the
 * file system has no hard links. */
LAC_MUST_CHECK lac_status laci_file_set_add_second_name(const laci_placement *file, char **name,
                                                        lac_error *err);

/** Removes the temporary file and frees the placement. */
void laci_placement_clear(laci_placement *file);

/** Is a set of files being renamed at this moment? A signal should then not end the process yet.
 * Safe in a signal handler. */
bool laci_file_set_is_renaming(void);

#endif
