/* SPDX-License-Identifier: Apache-2.0
 * Several output files that appear together in a folder, or not at all. They are written to a work
 * folder, a hidden folder with an unused name inside the target folder, and moved into place by
 * renaming at the end. Until then, a file in the work folder can be read to make the next one. */
#ifndef CLI_OUTPUT_FOLDER_H
#define CLI_OUTPUT_FOLDER_H

#include <limits.h>
#include <stdbool.h>

#include "lacuna/status.h"

typedef struct output_folder {
  const char *folder;       /* path of the folder in which the files appear */
  const char *const *names; /* [n] names of the files, owned by the caller */
  int n;
  bool force;          /* replace existing files */
  bool created;        /* output_folder_open created `folder` */
  char work[PATH_MAX]; /* the work folder; it is removed with all files that are left in it */
  int lock;            /* descriptor of the lock that shows that this process is alive */
} output_folder;

/** Checks that the names are free, and creates the folder and its work folder; work folders of dead
 * processes are removed. Close it in any case. Fails LAC_EXISTS, LAC_IO. */
LAC_MUST_CHECK lac_status output_folder_open(output_folder *b, const char *folder,
                                             const char *const *names, int n, bool force,
                                             lac_error *err);

/** Writes the path of a file in the work folder. Fails LAC_IO if it is too long. */
LAC_MUST_CHECK lac_status output_folder_work_path(const output_folder *b, const char *name,
                                                  char path[PATH_MAX], lac_error *err);

/** Moves all files from the work folder into place. On failure none is moved, and existing files
 * are unchanged. Fails LAC_EXISTS if a name was taken in the meantime, LAC_IO. */
LAC_MUST_CHECK lac_status output_folder_move_files(output_folder *b, lac_error *err);

/** Removes the work folder, and the folder too if nothing was placed in it. st: the status so far;
 * after a failure, paths of the work folder in the error's text are replaced by the final paths. */
void output_folder_close(output_folder *b, lac_status st, lac_error *err);

#endif
