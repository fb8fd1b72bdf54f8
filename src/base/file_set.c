/* SPDX-License-Identifier: Apache-2.0
 * Renames the files of a set, all or none.
 *
 * A file with a new name is renamed so that nothing is replaced; one that replaces an old file is
 * exchanged with it. So two programs that write the same name at once cannot lose either file, and
 * the name always exists. */
#define _GNU_SOURCE
#include "base/file_set.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/temporary.h"
#include "base/memory.h"

enum { SECOND_NAMES = 10 };

static _Thread_local laci_file_set *open_set;
static atomic_int n_placing;

bool laci_file_set_is_renaming(void) { return atomic_load(&n_placing) > 0; }

static lac_status fail_errno(lac_error *err, const laci_placement *file, const char *doing) {
  int cause = errno;
  if (cause == EEXIST) {
    return laci_hint(err, LAC_HINT_FORCE,
                     laci_fail(err, LAC_EXISTS, "%s: exists already", file->shown));
  }
  return laci_fail(err, cause == ENOENT ? LAC_NOT_FOUND : LAC_IO, "%s: %s: %s", file->shown, doing,
                   strerror(cause));
}

static char *copy_text(const char *text) {
  size_t n = strlen(text) + 1;
  char *copy = laci_alloc(n, 1);
  if (copy) memcpy(copy, text, n);
  return copy;
}

/* ---- One file ---- */

/** Renames a file without replacing another. On file systems that do not support that, an empty
 * file of the new name is created first: the process that creates it owns the name. */
static int rename_without_replacing(int folder, const char *from, const char *to) {
  int result = renameat2(folder, from, folder, to, RENAME_NOREPLACE);
  if (!result || (errno != ENOSYS && errno != EINVAL)) return result;
  int claim = openat(folder, to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (claim < 0) return -1;
  (void)close(claim);
  result = renameat(folder, from, folder, to);
  if (result) {
    int cause = errno;
    (void)unlinkat(folder, to, 0);
    errno = cause;
  }
  return result;
}

/** Replaces a file where exchange is not supported: the old file gets an additional name, the new
 * one its place, and the old one is then renamed to the temporary name, which is free by then. */
static int exchange_files_in_steps(const laci_placement *file) {
  size_t n = strlen(file->temporary) + sizeof ".old";
  char *aside = laci_alloc(n, 1);
  if (!aside) {
    errno = ENOMEM;
    return -1;
  }
  (void)snprintf(aside, n, "%s.old", file->temporary);
  (void)unlinkat(file->folder, aside, 0);
  bool linked = linkat(file->folder, file->path, file->folder, aside, 0) == 0;
  int result = linked ? 0 : renameat(file->folder, file->path, file->folder, aside);
  if (!result) result = renameat(file->folder, file->temporary, file->folder, file->path);
  int cause = errno;
  if (!result) (void)renameat(file->folder, aside, file->folder, file->temporary);
  else if (linked) (void)unlinkat(file->folder, aside, 0);
  else (void)renameat(file->folder, aside, file->folder, file->path);
  laci_free(aside);
  errno = cause;
  return result;
}

/** Exchanges the new file with the old one at `path`, which is then called `temporary`. */
static int exchange_files(const laci_placement *file) {
  struct stat old;
  if (fstatat(file->folder, file->path, &old, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(old.st_mode)) {
    errno = EISDIR;
    return -1;
  }
  int result = renameat2(file->folder, file->temporary, file->folder, file->path, RENAME_EXCHANGE);
  if (!result || (errno != ENOSYS && errno != EINVAL)) return result;
  return exchange_files_in_steps(file);
}

/** Locks the old file, so that it is not taken for a file of a dead process. */
static void lock_old_file(laci_placement *file) {
  int fd = openat(file->folder, file->temporary, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return;
  (void)flock(fd, LOCK_EX | LOCK_NB);
  if (file->fd >= 0) (void)close(file->fd);
  file->fd = fd;
}

static lac_status rename_to_hidden(laci_placement *file, lac_error *err) {
  file->placed = renameat(file->folder, file->path, file->folder, file->temporary) == 0;
  if (file->placed || errno == ENOENT) return LAC_OK;
  return fail_errno(err, file, "cannot rename it");
}

static lac_status rename_to_final_name(laci_placement *file, lac_error *err) {
  if (file->kind == LACI_PLACING_HIDDEN) return rename_to_hidden(file, err);
  if (file->kind != LACI_PLACING_FILE) return LAC_OK;
  int result = rename_without_replacing(file->folder, file->temporary, file->path);
  if (result && errno == EEXIST && file->force) {
    result = exchange_files(file);
    file->over = !result;
    if (file->over) lock_old_file(file);
  }
  if (result) return fail_errno(err, file, "cannot rename to it");
  file->placed = true;
  return LAC_OK;
}

/** Restores the state before the set: removes the new file, and renames the old one back. */
static void restore_old_file(laci_placement *file) {
  if (!file->path) return;
  switch (file->kind) {
    case LACI_PLACING_FILE:
      if (file->over) (void)renameat(file->folder, file->temporary, file->folder, file->path);
      else if (file->placed) (void)unlinkat(file->folder, file->path, 0);
      else (void)unlinkat(file->folder, file->temporary, 0);
      break;
    case LACI_PLACING_FOLDER: (void)unlinkat(file->folder, file->path, AT_REMOVEDIR); break;
    case LACI_PLACING_SECOND: (void)unlinkat(file->folder, file->path, 0); break;
    case LACI_PLACING_HIDDEN:
      if (file->placed) (void)renameat(file->folder, file->temporary, file->folder, file->path);
      else (void)unlinkat(file->folder, file->temporary, 0);
      break;
  }
}

/** Removes the old file, after all files were renamed. */
static void remove_old_file(laci_placement *file) {
  bool hidden = file->kind == LACI_PLACING_HIDDEN;
  if (file->over || hidden) (void)unlinkat(file->folder, file->temporary, 0);
  if (file->fd >= 0) (void)close(file->fd);
  file->fd = -1;
}

/** Removes the second names (hard links) of this file and those that dead processes left, since the
 * file that referred to them was replaced. Such a name may belong to an old file, so this process
 * must not hold a lock on it. */
static void remove_second_names(laci_placement *file) {
  if (file->kind != LACI_PLACING_SECOND) return;
  (void)unlinkat(file->folder, file->path, 0);
  char *digit = file->path + strlen(file->path) - sizeof "N.data" + 1;
  for (*digit = '0'; *digit < '0' + SECOND_NAMES; ++*digit) {
    (void)laci_remove_if_owner_is_dead(file->folder, file->path);
  }
}

static void free_placement(laci_placement *file) {
  if (file->fd >= 0) (void)close(file->fd);
  laci_temporary_unregister(file->registered);
  laci_free(file->shown);
  laci_free(file->temporary);
  laci_free(file->path);
  *file = (laci_placement){.fd = -1, .registered = -1};
}

void laci_placement_clear(laci_placement *file) {
  restore_old_file(file);
  free_placement(file);
}

/* ---- A set ---- */

static void open_file_set(laci_file_set *set, bool separate) {
  *set = (laci_file_set){.outer = open_set, .separate = separate};
  open_set = set;
}

void laci_file_set_begin(laci_file_set *set) { open_file_set(set, false); }

void laci_file_set_begin_separate(laci_file_set *set) { open_file_set(set, true); }

/** Syncs a folder, so that its renames survive a power cut. Not every file system can, and the file
 * is complete in any case, so a failure is ignored. */
static void sync_folder(const laci_placement *file) {
  size_t n = laci_path_folder_length(file->path);
  char *folder = laci_alloc(n + 2, 1);
  if (!folder) return;
  if (n) memcpy(folder, file->path, n);
  else folder[0] = '.';
  int fd = openat(file->folder, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) {
    (void)fsync(fd);
    (void)close(fd);
  }
  laci_free(folder);
}

static bool is_same_folder(const laci_placement *a, const laci_placement *b) {
  size_t n = laci_path_folder_length(a->path);
  return a->folder == b->folder && n == laci_path_folder_length(b->path) &&
         strncmp(a->path, b->path, n) == 0;
}

static lac_status rename_all_files(laci_file_set *set, lac_error *err) {
  lac_status st = LAC_OK;
  atomic_fetch_add(&n_placing, 1);
  for (size_t at = 0; at < set->n && !st; at++) st = rename_to_final_name(&set->files[at], err);
  for (size_t at = set->n; at-- > 0 && st;) restore_old_file(&set->files[at]);
  for (size_t at = 0; at < set->n && !st; at++) {
    if (at == 0 || !is_same_folder(&set->files[at - 1], &set->files[at]))
      sync_folder(&set->files[at]);
  }
  for (size_t at = 0; at < set->n && !st; at++) remove_old_file(&set->files[at]);
  for (size_t at = 0; at < set->n && !st; at++) remove_second_names(&set->files[at]);
  for (size_t at = 0; at < set->n; at++) free_placement(&set->files[at]);
  set->n = 0;
  atomic_fetch_sub(&n_placing, 1);
  return st;
}

static lac_status reserve_space_for_placements(laci_file_set *set, size_t n, lac_error *err) {
  if (set->n + n <= set->capacity) return LAC_OK;
  size_t capacity = 2 * set->capacity > set->n + n ? 2 * set->capacity : set->n + n;
  laci_placement *files = laci_resize(set->files, set->n, capacity, sizeof *files);
  if (!files) return laci_fail_memory(err, "a list of files");
  set->files = files;
  set->capacity = capacity;
  return LAC_OK;
}

static lac_status move_files_to_outer_set(laci_file_set *outer, laci_file_set *set,
                                          lac_error *err) {
  lac_status st = reserve_space_for_placements(outer, set->n, err);
  if (st || set->n == 0) return st;
  memcpy(outer->files + outer->n, set->files, set->n * sizeof *set->files);
  outer->n += set->n;
  set->n = 0;
  return LAC_OK;
}

lac_status laci_file_set_end(laci_file_set *set, lac_status st, lac_error *err) {
  assert(open_set == set);
  open_set = set->outer;
  if (!st)
    st = set->outer && !set->separate ? move_files_to_outer_set(set->outer, set, err)
                                      : rename_all_files(set, err);
  while (set->n > 0)
    laci_placement_clear(&set->files[--set->n]); /* files are left here only after a failure */
  laci_free(set->files);
  *set = (laci_file_set){0};
  return st;
}

/* ---- Adding files to a set ---- */

lac_status laci_file_set_add(laci_placement *file, lac_error *err) {
  laci_file_set alone;
  if (!open_set) {
    laci_file_set_begin(&alone);
    lac_status st = laci_file_set_add(file, err);
    return laci_file_set_end(&alone, st, err);
  }
  lac_status st = reserve_space_for_placements(open_set, 1, err);
  if (st) return st;
  open_set->files[open_set->n++] = *file;
  *file = (laci_placement){.fd = -1, .registered = -1};
  return LAC_OK;
}

/** Adds a placement to the open set, for a file that no laci_writer wrote. temporary: NULL for
 * none. Takes ownership of file.fd, also on failure. */
static lac_status add_placement(laci_placement file, const char *path, const char *temporary,
                                lac_error *err) {
  assert(open_set);
  file.path = copy_text(path);
  file.shown = copy_text(path);
  file.temporary = temporary ? copy_text(temporary) : NULL;
  file.registered = laci_temporary_register(temporary ? temporary : path);
  lac_status st = file.path && file.shown && (!temporary || file.temporary)
                      ? laci_file_set_add(&file, err)
                      : laci_fail_memory(err, path);
  free_placement(&file);
  return st;
}

lac_status laci_file_set_add_move(const char *from, const char *to, bool force, lac_error *err) {
  laci_placement file = {.kind = LACI_PLACING_FILE, .folder = AT_FDCWD, .fd = -1, .force = force};
  return add_placement(file, to, from, err);
}

lac_status laci_file_set_hide_old_file(const char *path, lac_error *err) {
  char temporary_path[PATH_MAX], temporary[LACI_TEMPORARY_NAME];
  const char *slash = strrchr(path, '/');
  int n_folder = slash ? (int)(slash + 1 - path) : 0;
  int n = snprintf(temporary_path, sizeof temporary_path, "%.*s", n_folder, path);
  int fd = -1;
  if (n >= 0 && (size_t)n < sizeof temporary_path - sizeof temporary) {
    fd = laci_temporary_create_file(AT_FDCWD, temporary_path, path + n_folder, temporary);
  } else {
    errno = ENAMETOOLONG;
  }
  if (fd < 0) return laci_fail(err, LAC_IO, "%s: cannot rename it: %s", path, strerror(errno));
  memcpy(temporary_path + n_folder, temporary, sizeof temporary);
  laci_placement file = {.kind = LACI_PLACING_HIDDEN, .folder = AT_FDCWD, .fd = fd};
  lac_status st = add_placement(file, path, temporary_path, err);
  if (st) (void)unlink(temporary_path);
  return st;
}

lac_status laci_file_set_make_folder(const char *path, lac_error *err) {
  laci_placement file = {.kind = LACI_PLACING_FOLDER, .folder = AT_FDCWD, .fd = -1};
  if (mkdir(path, 0777) != 0) {
    return errno == EEXIST ? LAC_OK : laci_fail(err, LAC_IO, "%s: %s", path, strerror(errno));
  }
  lac_status st = add_placement(file, path, NULL, err);
  if (st) (void)rmdir(path);
  return st;
}

lac_status laci_file_set_add_second_name(const laci_placement *file, char **name, lac_error *err) {
  const char *slash = strrchr(file->path, '/');
  size_t n_folder = slash ? (size_t)(slash + 1 - file->path) : 0;
  char second[LACI_TEMPORARY_NAME], *path = laci_alloc(n_folder + sizeof second, 1);
  int result = -1;
  *name = NULL;
  if (!path) return laci_fail_memory(err, file->shown);
  memcpy(path, file->path, n_folder);
  for (int number = 0; number < SECOND_NAMES && result; number++) {
    laci_format_second_name(file->path + n_folder, number, second);
    memcpy(path + n_folder, second, sizeof second);
    result = linkat(file->folder, file->temporary, file->folder, path, 0);
    if (result && errno != EEXIST) break;
  }
  lac_status st = LAC_OK;
  if (!result) {
    laci_placement made = {.kind = LACI_PLACING_SECOND, .folder = file->folder, .fd = -1};
    *name = copy_text(second);
    st = *name ? add_placement(made, path, NULL, err) : laci_fail_memory(err, file->shown);
    if (st) {
      (void)unlinkat(file->folder, path, 0);
      laci_free(*name);
      *name = NULL;
    }
  }
  laci_free(path);
  return st;
}
