/* SPDX-License-Identifier: Apache-2.0
 * Files that appear together or not at all.
 *
 * While a set is open on a thread, every writer that is committed there (base/writer.h) waits, as a
 * whole file under its temporary name, for the end of the outermost set. That gives all of them
 * their names, by renaming only. What they replace is kept under the temporary names until all have
 * theirs: a failure in between puts every old file back, byte for byte.
 *
 * A process that is killed while names are given leaves new files and old ones, each whole, in the
 * order of the commits; so a file that names others (a model its data) is committed after them. A
 * model that replaces one with a data file of the same name is committed twice: first a version
 * that knows the new data by a second name (laci_file_set_second_name), then the data, then the
 * model itself. So whenever the process ends, the model and the data that it names belong together.
 */
#ifndef LACI_BASE_FILE_SET_H
#define LACI_BASE_FILE_SET_H

#include <stdbool.h>
#include <stddef.h>

#include "lacuna/status.h"

typedef enum laci_placing {
  LACI_PLACING_FILE,   /* `temporary` is to be called `path` */
  LACI_PLACING_FOLDER, /* `path` was made for the files of the set: stays with them */
  LACI_PLACING_SECOND, /* `path` is a second name: goes when the set has its names */
  LACI_PLACING_HIDDEN  /* what is called `path` is called `temporary` meanwhile, and goes then */
} laci_placing;

/** A file that waits. */
typedef struct laci_placement {
  laci_placing kind;
  int folder; /* what both paths are relative to; AT_FDCWD, or borrowed */
  char *path, *temporary;
  char *shown;    /* the path as texts name it */
  int fd;         /* holds the temporary file's lock; -1: none */
  int registered; /* base/temporary.h */
  bool force;     /* may replace */
  bool placed;    /* has its name */
  bool over;      /* ... and `temporary` is now what had it before */
} laci_placement;

/** The caller's, on its stack. */
typedef struct laci_file_set {
  struct laci_file_set *outer;
  laci_placement *files;
  size_t n, capacity;
  bool apart;
} laci_file_set;

/** From now on commits on this thread wait for the end of the set. */
void laci_file_set_begin(laci_file_set *set);
/** The same, but its files get their names at its own end, whatever set it is in: for files that
 * are read back before the outer set ends. */
void laci_file_set_begin_apart(laci_file_set *set);

/** st: how the work went. Where well, the files join the set around this one, or get their names if
 * there is none. Else, and on a failure here, no new file is left and all old ones are as they
 * were. Returns st, or what failed: LAC_EXISTS where a name was taken meanwhile, LAC_IO,
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_file_set_end(laci_file_set *set, lac_status st, lac_error *err);

/** Into the open set, or, where none is, to its name at once. Takes what *file owns on success, and
 * empties it. Fails LAC_NO_MEMORY, and as laci_file_set_end. */
LAC_MUST_CHECK lac_status laci_file_set_add(laci_placement *file, lac_error *err);
/** A whole file `from`, on the same file system, for the name `to`; needs an open set. From now on
 * it goes where the set fails. */
LAC_MUST_CHECK lac_status laci_file_set_move(const char *from, const char *to, bool force,
                                             lac_error *err);
/** What is called `path` loses its name before the files that are added after this get theirs: for
 * a model whose data are replaced, where no second name serves. Needs an open set. Fails LAC_IO,
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_file_set_hide(const char *path, lac_error *err);
/** Makes a folder, which goes again where the open set fails; one that exists is fine. Needs an
 * open set. Fails LAC_IO. */
LAC_MUST_CHECK lac_status laci_file_set_make_folder(const char *path, lac_error *err);
/** A second name for a file that waits, next to it, until the open set has its names. *name:
 * without the folder, the caller's (laci_free); NULL where the file system has no second names. */
LAC_MUST_CHECK lac_status laci_file_set_second_name(const laci_placement *file, char **name,
                                                    lac_error *err);

/** Removes what waits and frees it. */
void laci_placement_clear(laci_placement *file);

/** Are names being given just now? A signal that would end the process had better wait. Safe in a
 * signal handler. */
bool laci_file_sets_are_placed(void);

#endif
