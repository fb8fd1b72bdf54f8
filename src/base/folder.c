/* SPDX-License-Identifier: Apache-2.0
 * Finds, removes, opens and locks files of folders. */
#include "base/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

static const struct dirent *next_matching_file(DIR *files, const char *pattern) {
  const struct dirent *file;
  do file = readdir(files);
  while (file && fnmatch(pattern, file->d_name, FNM_PERIOD) != 0);
  return file;
}

bool laci_folder_has_match(const char *folder, const char *pattern) {
  DIR *files = opendir(folder);
  bool found = files && next_matching_file(files, pattern);
  if (files) (void)closedir(files);
  return found;
}

lac_status laci_folder_remove_matching(const char *folder, const char *pattern, lac_error *err) {
  DIR *files = opendir(folder);
  lac_status st = LAC_OK;
  if (!files) {
    return errno == ENOENT ? LAC_OK : laci_fail(err, LAC_IO, "%s: %s", folder, strerror(errno));
  }
  for (const struct dirent *file; !st && (file = next_matching_file(files, pattern));) {
    if (unlinkat(dirfd(files), file->d_name, 0) == 0 || errno == ENOENT) continue;
    st = laci_fail(err, LAC_IO, "%s/%s: %s", folder, file->d_name, strerror(errno));
  }
  (void)closedir(files);
  return st;
}

bool laci_path_is_link(const char *path) {
  struct stat found;
  return lstat(path, &found) == 0 && S_ISLNK(found.st_mode);
}

static lac_status fail_to_open(const char *shown, lac_error *err) {
  int cause = errno;
  if (cause == ELOOP) {
    return laci_fail(err, LAC_BAD_FILE, "%s: it is a link, which is not followed", shown);
  }
  return laci_fail(err, cause == ENOENT || cause == ENOTDIR ? LAC_NOT_FOUND : LAC_IO, "%s: %s",
                   shown, strerror(cause));
}

lac_status laci_folder_enter(const char *path, int *folder, lac_error *err) {
  *folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return *folder < 0 ? fail_to_open(path, err) : LAC_OK;
}

lac_status laci_folder_open_file(int folder, const char *name, const char *shown, int flags,
                                 int *fd, lac_error *err) {
  struct stat found;
  /* without O_NONBLOCK, opening a pipe would wait for its other end */
  *fd = openat(folder, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
  if (*fd < 0) return fail_to_open(shown, err);
  if (fstat(*fd, &found) == 0 && S_ISREG(found.st_mode)) return LAC_OK;
  (void)close(*fd);
  *fd = -1;
  return laci_fail(err, LAC_BAD_FILE, "%s: not a regular file", shown);
}

lac_status laci_folder_lock(const char *folder, int *lock, lac_error *err) {
  *lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (*lock < 0 || flock(*lock, LOCK_EX | LOCK_NB) == 0) return LAC_OK;
  bool is_taken = errno == EWOULDBLOCK;
  laci_folder_unlock(*lock);
  *lock = -1;
  if (!is_taken) return LAC_OK;
  return laci_fail(err, LAC_EXISTS, "%s: another run writes there now, wanted a folder of its own",
                   folder);
}

void laci_folder_unlock(int lock) {
  if (lock >= 0) (void)close(lock);
}
