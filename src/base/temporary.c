/* SPDX-License-Identifier: Apache-2.0
 * Temporary names with locks, and the list of files to be removed at a signal. */
#define _GNU_SOURCE
#include "base/temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"

enum { NUMBERS = 10, RANDOM_TRIES = 16, MOST_REGISTERED = 64, HOUR_SECONDS = 3600, MOST_DEPTH = 8 };

/* ---- Locks ---- */

typedef enum holder { HOLDER_NONE, HOLDER_LIVES, HOLDER_UNKNOWN } holder;

/** Locks an open file or folder, unless another process holds the lock. */
static holder lock_file(int fd) {
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return HOLDER_NONE;
  return errno == EWOULDBLOCK ? HOLDER_LIVES : HOLDER_UNKNOWN;
}

/** Does the path still name the file that was opened? Then only the holder of its lock may remove
 * it. */
static bool is_same_file(int folder, const char *path, const struct stat *opened) {
  struct stat named;
  return fstatat(folder, path, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         named.st_dev == opened->st_dev && named.st_ino == opened->st_ino;
}

static void remove_folder_tree(int folder, const char *path, int depth);

/** Removes the content of a folder, and closes its descriptor. */
static void remove_folder_content(int fd, int depth) {
  DIR *files = fdopendir(fd);
  if (!files) {
    (void)close(fd);
    return;
  }
  for (const struct dirent *file; (file = readdir(files));) {
    if (strcmp(file->d_name, ".") == 0 || strcmp(file->d_name, "..") == 0) continue;
    remove_folder_tree(dirfd(files), file->d_name, depth);
  }
  (void)closedir(files);
}

static void remove_folder_tree(int folder, const char *path, int depth) {
  if (unlinkat(folder, path, 0) == 0 || depth == 0) return;
  int fd = openat(folder, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return;
  remove_folder_content(fd, depth - 1);
  (void)unlinkat(folder, path, AT_REMOVEDIR);
}

bool laci_remove_if_owner_is_dead(int folder, const char *path) {
  struct stat found;
  bool gone = false;
  int fd = openat(folder, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT;
  if (fstat(fd, &found) == 0 && (S_ISREG(found.st_mode) || S_ISDIR(found.st_mode))) {
    holder who = lock_file(fd);
    bool dead =
        who == HOLDER_NONE || (who == HOLDER_UNKNOWN && time(NULL) - found.st_mtime > HOUR_SECONDS);
    if (dead && is_same_file(folder, path, &found)) remove_folder_tree(folder, path, MOST_DEPTH);
    gone = dead && !is_same_file(folder, path, &found);
  }
  (void)close(fd);
  return gone;
}

void laci_remove_files_of_dead_owners(int folder) {
  int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *files = copy < 0 ? NULL : fdopendir(copy);
  if (!files && copy >= 0) (void)close(copy);
  for (const struct dirent *file; files && (file = readdir(files));) {
    if (fnmatch(".lacuna-*.tmp", file->d_name, 0) == 0)
      (void)laci_remove_if_owner_is_dead(folder, file->d_name);
  }
  if (files) (void)closedir(files);
}

/* ---- Temporary names ---- */

static uint64_t name_hash(const char *name) { return laci_hash64(name, strlen(name), 0); }

void laci_format_second_name(const char *name, int number, char second[LACI_TEMPORARY_NAME]) {
  (void)snprintf(second, LACI_TEMPORARY_NAME, ".lacuna-%016" PRIx64 "-%d.data", name_hash(name),
                 number);
}

/** Creates and locks a file; -1 and EEXIST: a living process uses the name. Between creation and
 * locking, another process may have removed it as that of a dead one. */
static int create_locked_file(int folder, const char *path) {
  for (int tries = 0; tries < RANDOM_TRIES; tries++) {
    struct stat made;
    int fd = openat(folder, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0) {
      if (errno != EEXIST) return -1;
      if (laci_remove_if_owner_is_dead(folder, path)) continue;
      break;
    }
    if (lock_file(fd) != HOLDER_LIVES && fstat(fd, &made) == 0 && is_same_file(folder, path, &made))
      return fd;
    (void)close(fd);
  }
  errno = EEXIST;
  return -1;
}

/** Joins prefix and name. False: too long. */
static bool join_path(const char *prefix, const char *name, char path[PATH_MAX]) {
  int n = snprintf(path, PATH_MAX, "%s%s", prefix, name);
  if (n >= 0 && n < PATH_MAX) return true;
  errno = ENAMETOOLONG;
  return false;
}

/** Creates a file with a random name, after all ten regular ones were in use. */
static int create_file_with_random_name(int folder, const char *prefix,
                                        char temporary[LACI_TEMPORARY_NAME]) {
  char path[PATH_MAX];
  uint64_t number;
  for (int tries = 0; tries < RANDOM_TRIES; tries++) {
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) return -1;
    (void)snprintf(temporary, LACI_TEMPORARY_NAME, ".lacuna-%016" PRIx64 ".tmp", number);
    if (!join_path(prefix, temporary, path)) return -1;
    int fd = create_locked_file(folder, path);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

int laci_temporary_create_file(int folder, const char *prefix, const char *name,
                               char temporary[LACI_TEMPORARY_NAME]) {
  char path[PATH_MAX], other[LACI_TEMPORARY_NAME];
  int fd = -1;
  for (int number = 0; number < NUMBERS; number++) {
    (void)snprintf(other, sizeof other, ".lacuna-%016" PRIx64 "-%d.tmp", name_hash(name), number);
    if (!join_path(prefix, other, path)) return -1;
    /* the file was created already: now remove what dead processes left under the other names */
    if (fd >= 0) {
      (void)laci_remove_if_owner_is_dead(folder, path);
      continue;
    }
    fd = create_locked_file(folder, path);
    if (fd >= 0) memcpy(temporary, other, sizeof other);
    else if (errno != EEXIST) return -1;
  }
  return fd >= 0 ? fd : create_file_with_random_name(folder, prefix, temporary);
}

int laci_temporary_create_folder(const char *parent, char *path, int size) {
  const char *between = parent[0] && parent[strlen(parent) - 1] == '/' ? "" : "/";
  uint64_t number;
  int in = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (in >= 0) {
    laci_remove_files_of_dead_owners(in);
    (void)close(in);
  }
  for (int tries = 0; tries < RANDOM_TRIES; tries++) {
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) return -1;
    int n = snprintf(path, (size_t)size, "%s%s.lacuna-%016" PRIx64 ".tmp", parent, between, number);
    if (n < 0 || n >= size) {
      errno = ENAMETOOLONG;
      return -1;
    }
    if (mkdir(path, 0700) != 0) {
      if (errno == EEXIST) continue;
      return -1;
    }
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && lock_file(fd) != HOLDER_LIVES) return fd;
    if (fd >= 0) (void)close(fd);
  }
  return -1;
}

void laci_temporary_remove_folder(const char *path, int fd) {
  remove_folder_tree(AT_FDCWD, path, MOST_DEPTH);
  (void)close(fd);
}

int laci_temporary_open_nameless(const char *folder) {
  int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return fd;
  char path[PATH_MAX];
  if (snprintf(path, sizeof path, "%s/.lacuna-XXXXXX", folder) >= (int)sizeof path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  fd = mkostemp(path, O_CLOEXEC);
  if (fd >= 0) (void)unlink(path);
  return fd;
}

/* ---- The end of the process at a signal ---- */

enum entry_state { ENTRY_FREE, ENTRY_TAKEN, ENTRY_NOTED };

/* The registered paths. Their memory is never freed, since the signal handler may read one while
 * its owner removes it. */
static struct {
  atomic_int state;
  char path[PATH_MAX];
} registry[MOST_REGISTERED];

int laci_temporary_register(const char *path) {
  size_t n = strlen(path);
  for (int at = 0; n < PATH_MAX && at < MOST_REGISTERED; at++) {
    int state = ENTRY_FREE;
    if (!atomic_compare_exchange_strong(&registry[at].state, &state, ENTRY_TAKEN)) continue;
    memcpy(registry[at].path, path, n + 1);
    atomic_store(&registry[at].state, ENTRY_NOTED);
    return at;
  }
  return -1;
}

void laci_temporary_unregister(int entry) {
  if (entry >= 0) atomic_store(&registry[entry].state, ENTRY_FREE);
}

void laci_temporary_remove_registered(void) {
  for (int at = 0; at < MOST_REGISTERED; at++) {
    if (atomic_load(&registry[at].state) == ENTRY_NOTED) (void)unlink(registry[at].path);
  }
  for (int at = 0; at < MOST_REGISTERED; at++) { /* removes folders, which are empty by now; fails
                                                    for files */
    if (atomic_load(&registry[at].state) == ENTRY_NOTED) (void)rmdir(registry[at].path);
  }
}
