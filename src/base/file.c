/* SPDX-License-Identifier: Apache-2.0
 * Reading texts, and atomic writing of files.
 *
 * A new file becomes visible by one rename. Where nothing may be replaced the rename itself checks
 * that (RENAME_NOREPLACE), so that two programs that write the same name at once cannot lose either
 * file. */
#define _GNU_SOURCE
#include "base/file.h"

#include "base/error.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
  WRITE_BUFFER_BYTES = 1 << 20,
  READ_STEP_BYTES = 1 << 16,
  MAX_NAME_TRIES = 16,
  MOST_LEFTOVERS = 64
};

size_t laci_path_folder(const char *path) {
  const char *slash = strrchr(path, '/');
  if (!slash) return 0;
  return slash == path ? 1 : (size_t)(slash - path);
}

/* ---- Reading ---- */

static laci_file_id id_of(const struct stat *info) {
  return (laci_file_id){.device = (uint64_t)info->st_dev, .inode = (uint64_t)info->st_ino};
}

/** Reads up to max_bytes + 1 bytes, so that the caller sees when there are more than max_bytes. */
static lac_status read_all(const char *path, int fd, size_t max_bytes, char **text, size_t *n,
                           lac_error *err) {
  size_t room = 0;
  *n = 0;
  for (;;) {
    if (room - *n < READ_STEP_BYTES) {
      size_t wanted = room * 2 + READ_STEP_BYTES;
      char *more = laci_resize(*text, *n, wanted + 1, 1);
      if (!more) return laci_fail_memory(err, path);
      *text = more;
      room = wanted;
    }
    ssize_t got = read(fd, *text + *n, room - *n);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return laci_fail_errno(err, path, "cannot read");
    *n += (size_t)got;
    if (got == 0 || *n > max_bytes) return LAC_OK;
  }
}

lac_status laci_file_read_text(const char *path, size_t max_bytes, char **text, lac_error *err) {
  char *bytes = NULL;
  size_t n = 0;
  *text = NULL;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return laci_fail_errno(err, path, "cannot open");
  lac_status st = read_all(path, fd, max_bytes, &bytes, &n, err);
  if (!st && n > max_bytes) {
    st = laci_fail(err, LAC_BAD_FILE, "%s: longer than %zu bytes", path, max_bytes);
  }
  if (!st && memchr(bytes, 0, n)) {
    st = laci_fail(err, LAC_BAD_FILE, "%s: not a text: it holds a zero byte", path);
  }
  if (!st) {
    bytes[n] = '\0';
    *text = bytes;
    bytes = NULL;
  }
  (void)close(fd);
  laci_free(bytes);
  return st;
}

/* ---- Leftovers ---- */

enum leftover_state { LEFTOVER_FREE, LEFTOVER_TAKEN, LEFTOVER_NOTED };

/* Names in memory that is never freed: the handler may read one while its owner drops it. */
static struct {
  atomic_int state;
  char path[PATH_MAX];
} leftovers[MOST_LEFTOVERS];

int laci_leftover_add(const char *path) {
  size_t n = strlen(path);
  for (int at = 0; n < PATH_MAX && at < MOST_LEFTOVERS; at++) {
    int state = LEFTOVER_FREE;
    if (!atomic_compare_exchange_strong(&leftovers[at].state, &state, LEFTOVER_TAKEN)) continue;
    memcpy(leftovers[at].path, path, n + 1);
    atomic_store(&leftovers[at].state, LEFTOVER_NOTED);
    return at;
  }
  return -1;
}

void laci_leftover_drop(int leftover) {
  if (leftover >= 0) atomic_store(&leftovers[leftover].state, LEFTOVER_FREE);
}

void laci_leftovers_remove(void) {
  for (int at = 0; at < MOST_LEFTOVERS; at++) {
    if (atomic_load(&leftovers[at].state) == LEFTOVER_NOTED) (void)unlink(leftovers[at].path);
  }
  for (int at = 0; at < MOST_LEFTOVERS; at++) { /* folders, empty by now; a file is none */
    if (atomic_load(&leftovers[at].state) == LEFTOVER_NOTED) (void)rmdir(leftovers[at].path);
  }
}

/* ---- Writing ---- */

struct laci_writer {
  char *path, *temporary;
  bool force;
  bool made_new; /* committed, and there was no file of that name */
  bool on_disk;  /* the temporary file exists */
  int leftover;  /* the temporary file as such */
  int fd;        /* -1: closed */
  size_t n;      /* bytes in the buffer */
  uint8_t *buffer;
};

/** LAC_OK where the target is free, or may be replaced. */
static lac_status check_target(const char *path, const laci_write_options *options,
                               lac_error *err) {
  struct stat info;
  if (stat(path, &info)) {
    /* A dangling link is a taken name, too; a missing folder shows later. */
    if (lstat(path, &info)) return LAC_OK;
    if (options->force) return LAC_OK;
    return laci_fail(err, LAC_EXISTS, "%s: exists already (force replaces it)", path);
  }
  laci_file_id id = id_of(&info);
  for (size_t at = 0; at < options->n_keep; at++) {
    if (options->keep[at].device == id.device && options->keep[at].inode == id.inode) {
      return laci_fail(err, LAC_BAD_ARGUMENT, "%s: is an input file, which is never overwritten",
                       path);
    }
  }
  if (!S_ISREG(info.st_mode)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: exists and is no regular file", path);
  }
  if (options->force) return LAC_OK;
  return laci_fail(err, LAC_EXISTS, "%s: exists already (force replaces it)", path);
}

/** Makes a file beside the target that nobody else could have foreseen, with the permissions that
 * umask leaves. */
static lac_status create_temporary(laci_writer *writer, lac_error *err) {
  size_t folder = laci_path_folder(writer->path);
  const char *between = folder && writer->path[folder - 1] != '/' ? "/" : "";
  size_t room = folder + 64;
  writer->temporary = laci_alloc(room, 1);
  if (!writer->temporary) return laci_fail_memory(err, writer->path);
  for (int tries = 0; tries < MAX_NAME_TRIES; tries++) {
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) break;
    (void)snprintf(writer->temporary, room, "%.*s%s.lacuna-%016" PRIx64 ".tmp", (int)folder,
                   writer->path, between, number);
    writer->fd = open(writer->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    writer->on_disk = writer->fd >= 0;
    if (writer->on_disk) {
      writer->leftover = laci_leftover_add(writer->temporary);
      return LAC_OK;
    }
    if (errno != EEXIST) break;
  }
  return laci_fail_errno(err, writer->path, "cannot create");
}

lac_status laci_writer_open(const char *path, const laci_write_options *options,
                            laci_writer **writer, lac_error *err) {
  *writer = NULL;
  size_t n_path = strlen(path);
  if (n_path == 0 || path[n_path - 1] == '/') {
    return laci_fail(err, LAC_BAD_ARGUMENT, "'%s': not a file's name", path);
  }
  lac_status st = check_target(path, options, err);
  if (st) return st;
  laci_writer *made = laci_alloc(1, sizeof *made);
  if (!made) return laci_fail_memory(err, path);
  made->fd = made->leftover = -1;
  made->force = options->force;
  made->path = laci_alloc(n_path + 1, 1);
  made->buffer = laci_alloc(WRITE_BUFFER_BYTES, 1);
  if (made->path && made->buffer) {
    memcpy(made->path, path, n_path);
    st = create_temporary(made, err);
  } else {
    st = laci_fail_memory(err, path);
  }
  if (st) laci_writer_destroy(made);
  else *writer = made;
  return st;
}

static lac_status write_all(laci_writer *writer, const uint8_t *bytes, size_t n, lac_error *err) {
  while (n > 0) {
    ssize_t wrote = write(writer->fd, bytes, n < WRITE_BUFFER_BYTES ? n : WRITE_BUFFER_BYTES);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return laci_fail_errno(err, writer->path, "cannot write");
    bytes += wrote;
    n -= (size_t)wrote;
  }
  return LAC_OK;
}

static lac_status flush(laci_writer *writer, lac_error *err) {
  size_t n = writer->n;
  writer->n = 0;
  return write_all(writer, writer->buffer, n, err);
}

lac_status laci_writer_append(laci_writer *writer, const void *bytes, size_t size_bytes,
                              lac_error *err) {
  if (size_bytes > WRITE_BUFFER_BYTES - writer->n) {
    lac_status st = flush(writer, err);
    if (st) return st;
  }
  if (size_bytes >= WRITE_BUFFER_BYTES) return write_all(writer, bytes, size_bytes, err);
  if (size_bytes) memcpy(writer->buffer + writer->n, bytes, size_bytes);
  writer->n += size_bytes;
  return LAC_OK;
}

lac_status laci_writer_finish(laci_writer *writer, lac_error *err) {
  lac_status st = flush(writer, err);
  if (!st && fsync(writer->fd)) st = laci_fail_errno(err, writer->path, "cannot sync");
  if (close(writer->fd) && !st) st = laci_fail_errno(err, writer->path, "cannot close");
  writer->fd = -1;
  laci_free(writer->buffer); /* a command may have many files finished and waiting */
  writer->buffer = NULL;
  return st;
}

/** The rename that replaces nothing. File systems that do not know it get an empty file of our own
 * making first: whoever creates the name owns it. */
static int rename_new(const char *from, const char *to) {
  int result = renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
  if (!result || (errno != ENOSYS && errno != EINVAL)) return result;
  int claim = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (claim < 0) return -1;
  (void)close(claim);
  result = rename(from, to);
  if (result) {
    int cause = errno;
    (void)unlink(to);
    errno = cause;
  }
  return result;
}

/** A rename is safe from a power cut once its folder is synced. Not every file system can, and the
 * file is whole either way, so that a failure here is none. */
static void sync_folder(laci_writer *writer) {
  size_t n = laci_path_folder(writer->path);
  char *folder = laci_alloc(n + 2, 1);
  if (!folder) return;
  if (n) memcpy(folder, writer->path, n);
  else folder[0] = '.';
  int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) {
    (void)fsync(fd);
    (void)close(fd);
  }
  laci_free(folder);
}

lac_status laci_writer_commit(laci_writer *writer, lac_error *err) {
  bool fresh = true;
  int result = rename_new(writer->temporary, writer->path);
  if (result && errno == EEXIST && writer->force) {
    fresh = false;
    result = rename(writer->temporary, writer->path);
  }
  if (result && errno == EEXIST) {
    return laci_fail(err, LAC_EXISTS, "%s: exists already (force replaces it)", writer->path);
  }
  if (result) return laci_fail_errno(err, writer->path, "cannot rename to it");
  writer->on_disk = false;
  writer->made_new = fresh;
  laci_leftover_drop(writer->leftover);
  writer->leftover = -1;
  sync_folder(writer);
  return LAC_OK;
}

void laci_writer_retract(laci_writer *writer) {
  if (!writer || !writer->made_new) return;
  (void)unlink(writer->path);
  writer->made_new = false;
}

void laci_writer_destroy(laci_writer *writer) {
  if (!writer) return;
  if (writer->fd >= 0) (void)close(writer->fd);
  if (writer->on_disk) (void)unlink(writer->temporary);
  laci_leftover_drop(writer->leftover);
  laci_free(writer->buffer);
  laci_free(writer->temporary);
  laci_free(writer->path);
  laci_free(writer);
}

lac_status laci_file_write(const char *path, const void *bytes, size_t size_bytes, bool force,
                           lac_error *err) {
  laci_write_options options = {.force = force};
  laci_writer *writer = NULL;
  lac_status st = laci_writer_open(path, &options, &writer, err);
  if (!st) st = laci_writer_append(writer, bytes, size_bytes, err);
  if (!st) st = laci_writer_finish(writer, err);
  if (!st) st = laci_writer_commit(writer, err);
  laci_writer_destroy(writer);
  return st;
}
