/* SPDX-License-Identifier: Apache-2.0
 * Several files that are made one from the other and then appear together in a folder, or not at
 * all: they are made in a folder inside it, hidden and with a name not in use, and get their
 * places by renaming at the end. */
#ifndef CLI_OUTPUT_FOLDER_H
#define CLI_OUTPUT_FOLDER_H

#include <limits.h>
#include <stdbool.h>

#include "lacuna/status.h"

typedef struct output_folder {
  const char *folder;       /* where the files go */
  const char *const *names; /* of the files, n of them; views */
  int n;
  bool force;          /* files that are there already are replaced */
  bool made;           /* the folder is ours, too */
  char work[PATH_MAX]; /* where they are made; other files there go with it */
  int lock;            /* says that its process lives */
} output_folder;

/** Looks whether the names are free, and makes the folders; work folders of dead processes go.
 * Close it in any case. Fails LAC_EXISTS, LAC_IO. */
LAC_MUST_CHECK lac_status output_folder_open(output_folder *b, const char *folder,
                                             const char *const *names, int n, bool force,
                                             lac_error *err);

/** The path of a name in the folder where the files are made. Fails LAC_IO: it is too long. */
LAC_MUST_CHECK lac_status output_folder_path(const output_folder *b, const char *name,
                                             char path[PATH_MAX], lac_error *err);

/** All files are made: they get their places. On failure none has, and what was to be replaced is
 * as it was. Fails LAC_EXISTS where a name was taken meanwhile, LAC_IO. */
LAC_MUST_CHECK lac_status output_folder_place(output_folder *b, lac_error *err);

/** Removes what was made and not placed. st: how it ended; a failure's text names files where they
 * were to be, not where they were made. */
void output_folder_close(output_folder *b, lac_status st, lac_error *err);

#endif
