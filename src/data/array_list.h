/* SPDX-License-Identifier: Apache-2.0
 * The arrays of a path (.npy, .npz, a folder of .npy files), or a caller's arrays, by name. */
#ifndef LACI_DATA_ARRAY_LIST_H
#define LACI_DATA_ARRAY_LIST_H

#include "base/memory.h"
#include "data/rows.h"

typedef struct laci_npz laci_npz;

/** Name of the array that holds the samples' classes. */
extern const char laci_labels_name[];

/** Arrays and their names; zero-initialized is empty. */
typedef struct laci_array_list {
  laci_arena arena; /* memory of the names */
  laci_npz *npz;    /* the archive that holds the arrays; NULL: they are in separate files, or in
                       memory */
  int n;
  const char **names;
  laci_rows **rows; /* [n] the open arrays; a caller that takes one over sets its entry to NULL */
} laci_array_list;

/** Is the path a .npy file, a .npz file, or a folder of .npy or .npz files? */
bool laci_path_has_arrays(const char *path);
/** Is the path a folder with .npz files and no .npy file, so that each .npz file is one sample? */
bool laci_folder_has_archives(const char *path);
/** Lists the .npz files of a folder, sorted bytewise: *names, [*n], in the arena. Fails LAC_IO,
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_list_archives(const char *folder, laci_arena *arena,
                                             const char ***names, size_t *n, lac_error *err);

/** Opens the arrays of a path. A single .npy has the name "". Arrays that are read as a whole are
 * counted in the budget (NULL: the default limit of memory). Fails as laci_rows_open,
 * laci_npz_open. */
LAC_MUST_CHECK lac_status laci_array_list_open(const char *path, laci_budget *budget,
                                               laci_array_list *list, lac_error *err);
/** Opens a caller's n arrays. name: begins texts of errors. Fails LAC_BAD_ARGUMENT if two arrays
 * have the same name, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_array_list_open_memory(const char *name,
                                                      const laci_rows_memory *arrays, int n,
                                                      laci_array_list *list, lac_error *err);
/** Closes the arrays that the caller did not take over, and frees the names. */
void laci_array_list_close(laci_array_list *list);
/** Closes the list but not its .npz archive, which it returns to the caller. The archive must
 * outlive the arrays that were taken over. */
laci_npz *laci_array_list_close_but_npz(laci_array_list *list);

/** Checks that an array has one integer for each of n samples. Fails LAC_BAD_SHAPE. */
LAC_MUST_CHECK lac_status laci_check_labels(const laci_rows *labels, int64_t n, lac_error *err);

#endif
