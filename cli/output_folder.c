/* SPDX-License-Identifier: Apache-2.0
 * Uses a work folder inside the target folder, so that files are never renamed across file systems.
 */
#include "output_folder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file_set.h"
#include "base/temporary.h"

static lac_status join_path(const char *folder, const char *name, char path[PATH_MAX],
                            lac_error *err) {
  int n = snprintf(path, PATH_MAX, "%s/%s", folder, name);
  return n > 0 && n < PATH_MAX ? LAC_OK
                               : laci_fail(err, LAC_IO, "%s: the name is too long", folder);
}

static lac_status fail_errno(lac_error *err, const char *path) {
  return laci_fail(err, LAC_IO, "%s: %s", path, strerror(errno));
}

static lac_status fail_file_exists(lac_error *err, const char *path) {
  return laci_fail(err, LAC_EXISTS, "%s: it exists already (--force replaces it)", path);
}

/* Checks that no file of this name exists, or that it may be replaced. */
static lac_status check_name_is_free(const output_folder *b, const char *name, lac_error *err) {
  char path[PATH_MAX];
  struct stat found;
  lac_status st = join_path(b->folder, name, path, err);
  if (st || lstat(path, &found) != 0) return st;
  if (!b->force) return fail_file_exists(err, path);
  if (S_ISREG(found.st_mode)) return LAC_OK;
  return laci_fail(err, LAC_EXISTS, "%s: it exists and is no regular file", path);
}

lac_status output_folder_open(output_folder *b, const char *folder, const char *const *names, int n,
                              bool force, lac_error *err) {
  *b = (output_folder){.folder = folder, .names = names, .n = n, .force = force};
  b->created = mkdir(folder, 0777) == 0;
  if (!b->created && errno != EEXIST) return fail_errno(err, folder);
  lac_status st = LAC_OK;
  for (int k = 0; !st && k < n; k++) st = check_name_is_free(b, names[k], err);
  if (st) return st;
  b->lock = laci_temporary_create_folder(folder, b->work, sizeof b->work);
  if (b->lock >= 0) return LAC_OK;
  b->work[0] = 0;
  return fail_errno(err, folder);
}

lac_status output_folder_work_path(const output_folder *b, const char *name, char path[PATH_MAX],
                                   lac_error *err) {
  return join_path(b->work, name, path, err);
}

lac_status output_folder_move_files(output_folder *b, lac_error *err) {
  char from[PATH_MAX], to[PATH_MAX];
  laci_file_set set;
  lac_status st = LAC_OK;
  laci_file_set_begin(&set);
  for (int k = 0; !st && k < b->n; k++) {
    st = join_path(b->work, b->names[k], from, err);
    if (!st) st = join_path(b->folder, b->names[k], to, err);
    if (!st) st = laci_file_set_add_move(from, to, b->force, err);
  }
  return laci_file_set_end(&set, st, err);
}

void output_folder_close(output_folder *b, lac_status st, lac_error *err) {
  if (b->work[0]) {
    laci_temporary_remove_folder(b->work, b->lock);
    if (st) laci_error_replace_text(err, b->work, b->folder);
  }
  if (b->created) (void)rmdir(b->folder); /* fails if the folder is not empty, which is intended */
}
