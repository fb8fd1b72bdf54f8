/* SPDX-License-Identifier: Apache-2.0
 * A work folder inside the target, so that renaming never crosses file systems. */
#define _GNU_SOURCE /* renameat2, nftw */
#include "bundle.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

enum { MOST_HANDLES = 8 };

static lac_status join(const char *folder, const char *name, char path[PATH_MAX], lac_error *err) {
  int n = snprintf(path, PATH_MAX, "%s/%s", folder, name);
  return n > 0 && n < PATH_MAX ? LAC_OK
                               : laci_fail(err, LAC_IO, "%s: the name is too long", folder);
}

static lac_status fail_errno(lac_error *err, const char *path) {
  return laci_fail(err, LAC_IO, "%s: %s", path, strerror(errno));
}

static lac_status fail_taken(lac_error *err, const char *path) {
  return laci_fail(err, LAC_EXISTS, "%s: it exists already (--force replaces it)", path);
}

/* A name must be free, or a file that we may replace. */
static lac_status check_free(const bundle *b, const char *name, lac_error *err) {
  char path[PATH_MAX];
  struct stat found;
  lac_status st = join(b->folder, name, path, err);
  if (st || lstat(path, &found) != 0) return st;
  if (!b->force) return fail_taken(err, path);
  if (S_ISREG(found.st_mode)) return LAC_OK;
  return laci_fail(err, LAC_EXISTS, "%s: it exists and is no regular file", path);
}

lac_status bundle_open(bundle *b, const char *folder, const char *const *names, int n, bool force,
                       lac_error *err) {
  assert(n <= BUNDLE_MOST);
  *b = (bundle){.folder = folder, .names = names, .n = n, .force = force};
  b->made = mkdir(folder, 0777) == 0;
  if (!b->made && errno != EEXIST) return fail_errno(err, folder);
  lac_status st = LAC_OK;
  for (int k = 0; !st && k < n; k++) st = check_free(b, names[k], err);
  if (!st) st = join(folder, ".lacuna-XXXXXX", b->work, err);
  if (st) {
    b->work[0] = 0;
    return st;
  }
  if (mkdtemp(b->work)) return LAC_OK;
  b->work[0] = 0;
  return fail_errno(err, folder);
}

lac_status bundle_path(const bundle *b, const char *name, char path[PATH_MAX], lac_error *err) {
  return join(b->work, name, path, err);
}

/* Without force a name that was taken meanwhile stays as it is. */
static lac_status place(bundle *b, int k, lac_error *err) {
  char from[PATH_MAX], to[PATH_MAX];
  lac_status st = join(b->work, b->names[k], from, err);
  if (!st) st = join(b->folder, b->names[k], to, err);
  if (st) return st;
  int failed = renameat2(AT_FDCWD, from, AT_FDCWD, to, b->force ? 0 : RENAME_NOREPLACE);
  if (failed && (errno == EINVAL || errno == ENOSYS)) failed = rename(from, to);
  b->placed[k] = !failed;
  if (failed) return errno == EEXIST ? fail_taken(err, to) : fail_errno(err, to);
  return LAC_OK;
}

lac_status bundle_place(bundle *b, lac_error *err) {
  lac_status st = LAC_OK;
  for (int k = 0; !st && k < b->n; k++) st = place(b, k, err);
  for (int k = 0; st && k < b->n; k++) {
    char path[PATH_MAX];
    if (b->placed[k] && !join(b->folder, b->names[k], path, NULL)) (void)unlink(path);
    b->placed[k] = false;
  }
  return st;
}

static int remove_one(const char *path, const struct stat *found, int kind, struct FTW *at) {
  (void)found;
  (void)kind;
  (void)at;
  (void)remove(path);
  return 0;
}

void bundle_close(bundle *b) {
  if (b->work[0]) (void)nftw(b->work, remove_one, MOST_HANDLES, FTW_DEPTH | FTW_PHYS);
  if (b->made) (void)rmdir(b->folder); /* where something is in it now, it stays */
}
