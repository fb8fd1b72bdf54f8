/* SPDX-License-Identifier: Apache-2.0
 * Knows the names of a training run's files: only this file lists them. Checks folders and paths by
 * these names (run_folder.h). */
#define _GNU_SOURCE /* realpath */
#include "runs/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/folder.h"

bool laci_is_run_file_name(const char *name) {
  static const char *const patterns[] = {LACI_RUN_MARK,    LACI_RUN_LOG,   LACI_RUN_CURVES,
                                         LACI_RUN_SUMMARY, LACI_RUN_ORDER, LACI_RUN_CHECKPOINTS,
                                         LACI_RUN_EVENTS};
  for (size_t k = 0; k < sizeof patterns / sizeof *patterns; k++) {
    if (fnmatch(patterns[k], name, FNM_PERIOD) == 0) return true;
  }
  return false;
}

/** Does a name in a folder not count as a user's file? This is true for ".", "..", and temporary
 * files of this program. */
static bool is_not_user_file(const char *name) {
  return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
         fnmatch(".lacuna-*.tmp", name, 0) == 0;
}

/** Checks that the log of an earlier run is a regular file, since it is opened in place; all other
 * files are replaced. It is checked early, because a run removes the earlier run's checkpoints
 * before it opens the log. */
static lac_status check_log_is_regular_file(const char *folder, lac_error *err) {
  char path[PATH_MAX];
  int in = -1, log = -1;
  (void)snprintf(path, sizeof path, "%s/" LACI_RUN_LOG, folder);
  lac_status st = laci_folder_enter(folder, &in, err);
  if (st) return st;
  st = laci_folder_open_file(in, LACI_RUN_LOG, path, O_RDONLY, &log, err);
  (void)close(in);
  if (log >= 0) (void)close(log);
  return st == LAC_NOT_FOUND ? LAC_OK : st;
}

lac_status laci_run_folder_check_usable(const char *folder, lac_error *err) {
  char first[NAME_MAX + 1] = "";
  if (laci_folder_has_match(folder, LACI_RUN_MARK) ||
      laci_folder_has_match(folder, LACI_RUN_CHECKPOINTS))
    return check_log_is_regular_file(folder, err);
  DIR *files = opendir(folder);
  if (!files) {
    return errno == ENOENT ? LAC_OK : laci_fail(err, LAC_IO, "%s: %s", folder, strerror(errno));
  }
  for (const struct dirent *file;
       (file = readdir(files));) { /* the file whose name comes first is reported, so that the
                                      message is always the same */
    if (is_not_user_file(file->d_name) || (first[0] && strcmp(file->d_name, first) > 0)) continue;
    (void)snprintf(first, sizeof first, "%s", file->d_name);
  }
  (void)closedir(files);
  if (!first[0]) return LAC_OK;
  return laci_fail(err, LAC_EXISTS,
                   "%s: it holds %s and no " LACI_RUN_MARK
                   ", so it is not a run's folder; wanted a run's, a new or an empty one",
                   folder, first);
}

/** Writes the path of a file, which need not exist, to `real`: its folder with links resolved, then
 * its name. */
static bool resolve_path(const char *path, char real[PATH_MAX]) {
  char folder[PATH_MAX];
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  int n = slash ? snprintf(folder, sizeof folder, "%.*s/", (int)(slash - path), path)
                : snprintf(folder, sizeof folder, ".");
  if (n < 0 || (size_t)n >= sizeof folder || !realpath(folder, real)) return false;
  size_t end = strlen(real);
  n = snprintf(real + end, PATH_MAX - end, "%s%s", end > 1 ? "/" : "", name);
  return n >= 0 && (size_t)n < PATH_MAX - end;
}

static bool is_path_of_run_file(const char *real, const char *folder) {
  size_t n = strlen(folder), n_best = strlen(LACI_RUN_BEST "/");
  if (strncmp(real, folder, n) != 0 || (n > 1 && real[n] != '/')) return false;
  const char *rest = real + n + (n > 1 ? 1 : 0);
  if (strncmp(rest, LACI_RUN_BEST "/", n_best) == 0) rest += n_best;
  return !strchr(rest, '/') && laci_is_run_file_name(rest);
}

/** Is `file` one of the run's files in the folder? */
static bool is_run_file_in_folder(const char *folder, const struct stat *file) {
  DIR *files = opendir(folder);
  bool same = false;
  for (const struct dirent *entry; files && !same && (entry = readdir(files));) {
    struct stat found;
    same = laci_is_run_file_name(entry->d_name) &&
           fstatat(dirfd(files), entry->d_name, &found, 0) == 0 && found.st_dev == file->st_dev &&
           found.st_ino == file->st_ino;
  }
  if (files) (void)closedir(files);
  return same;
}

bool laci_run_may_write_path(const char *folder, const char *path) {
  char real[PATH_MAX], resolved[PATH_MAX], best[PATH_MAX];
  struct stat file;
  if (!realpath(folder, resolved)) return false;
  if (resolve_path(path, real) && is_path_of_run_file(real, resolved)) return true;
  if (realpath(path, real) && is_path_of_run_file(real, resolved)) return true;
  if (stat(path, &file) != 0) return false;
  int n = snprintf(best, sizeof best, "%s/" LACI_RUN_BEST, resolved);
  return is_run_file_in_folder(resolved, &file) ||
         (n > 0 && (size_t)n < sizeof best && is_run_file_in_folder(best, &file));
}
