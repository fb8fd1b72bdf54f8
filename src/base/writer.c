/* SPDX-License-Identifier: Apache-2.0
 * Writes temporary files and commits them. */
#define _GNU_SOURCE
#include "base/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/file_set.h"
#include "base/temporary.h"
#include "base/memory.h"

enum {
  WRITE_BUFFER_BYTES = 1 << 20,
  HOLE_BYTES = 64 << 10, /* size of blocks of zeros that are not written */
  MOST_DESCRIPTORS = 256 /* finished files with higher descriptors are closed, since a model may
                            have thousands */
};

struct laci_writer {
  laci_placement file;
  size_t n;        /* number of bytes in the buffer */
  bool holes;      /* blocks of zeros are not written */
  bool ends_early; /* zeros at the end were not written: the file must still be extended */
  uint8_t *buffer;
};

/* ---- Beginning ---- */

/** Checks that the target does not exist, or may be replaced. */
static lac_status check_target_is_writable(int folder, const char *path, const char *shown,
                                           const laci_write_options *options, lac_error *err) {
  struct stat info;
  if (fstatat(folder, path, &info, 0)) {
    /* A dangling link counts as existing; a missing folder is found later. */
    if (fstatat(folder, path, &info, AT_SYMLINK_NOFOLLOW) || options->force) return LAC_OK;
    return laci_hint(err, LAC_HINT_FORCE, laci_fail(err, LAC_EXISTS, "%s: exists already", shown));
  }
  for (size_t at = 0; at < options->n_keep; at++) {
    const laci_file_id *kept = &options->keep[at];
    if (kept->device == (uint64_t)info.st_dev && kept->inode == (uint64_t)info.st_ino) {
      return laci_fail(err, LAC_BAD_ARGUMENT, "%s: is an input file, which is never overwritten",
                       shown);
    }
  }
  if (!S_ISREG(info.st_mode)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: exists and is no regular file", shown);
  }
  if (options->force) return LAC_OK;
  return laci_hint(err, LAC_HINT_FORCE, laci_fail(err, LAC_EXISTS, "%s: exists already", shown));
}

static char *copy_text(const char *text, size_t n) {
  char *copy = laci_alloc(n + 1, 1);
  if (copy) memcpy(copy, text, n);
  return copy;
}

/** Registers the temporary file for removal at a signal. Its path is the folder of the shown path
 * with the temporary name. */
static void register_temporary(laci_writer *writer, const char *temporary) {
  const char *slash = strrchr(writer->file.shown, '/');
  int n_folder = slash ? (int)(slash + 1 - writer->file.shown) : 0;
  char path[PATH_MAX];
  int n = snprintf(path, sizeof path, "%.*s%s", n_folder, writer->file.shown, temporary);
  if (n > 0 && (size_t)n < sizeof path) writer->file.registered = laci_temporary_register(path);
}

/** Creates the temporary file next to the target. */
static lac_status create_temporary(laci_writer *writer, lac_error *err) {
  laci_placement *file = &writer->file;
  const char *slash = strrchr(file->path, '/');
  size_t n_folder = slash ? (size_t)(slash + 1 - file->path) : 0;
  char *prefix = copy_text(file->path, n_folder), temporary[LACI_TEMPORARY_NAME];
  file->temporary = laci_alloc(n_folder + sizeof temporary, 1);
  lac_status st = prefix && file->temporary ? LAC_OK : laci_fail_memory(err, file->shown);
  if (!st) {
    file->fd = laci_temporary_create_file(file->folder, prefix, file->path + n_folder, temporary);
    if (file->fd < 0) st = laci_fail_errno(err, writer->file.shown, "cannot create");
  }
  if (!st) {
    memcpy(file->temporary, file->path, n_folder);
    memcpy(file->temporary + n_folder, temporary, sizeof temporary);
    register_temporary(writer, temporary);
  }
  laci_free(prefix);
  return st;
}

/** Frees a writer that has no temporary file yet. */
static void free_new_writer(laci_writer *writer) {
  laci_free(writer->file.path);
  laci_free(writer->file.shown);
  laci_free(writer->file.temporary);
  laci_free(writer->buffer);
  laci_free(writer);
}

lac_status laci_writer_open_at(int folder, const char *name, const char *shown,
                               const laci_write_options *options, laci_writer **writer,
                               lac_error *err) {
  *writer = NULL;
  size_t n = strlen(name);
  if (n == 0 || name[n - 1] == '/') {
    return laci_fail(err, LAC_BAD_ARGUMENT, "'%s': not a file's name", shown);
  }
  lac_status st = check_target_is_writable(folder, name, shown, options, err);
  if (st) return st;
  laci_writer *made = laci_alloc(1, sizeof *made);
  if (!made) return laci_fail_memory(err, shown);
  made->file =
      (laci_placement){.folder = folder, .fd = -1, .registered = -1, .force = options->force};
  made->holes = options->holes;
  made->file.path = copy_text(name, n);
  made->file.shown = copy_text(shown, strlen(shown));
  made->buffer = laci_alloc(WRITE_BUFFER_BYTES, 1);
  bool whole = made->file.path && made->file.shown && made->buffer;
  st = whole ? create_temporary(made, err) : laci_fail_memory(err, shown);
  if (st) free_new_writer(made);
  else *writer = made;
  return st;
}

lac_status laci_writer_open(const char *path, const laci_write_options *options,
                            laci_writer **writer, lac_error *err) {
  return laci_writer_open_at(AT_FDCWD, path, path, options, writer, err);
}

/* ---- Filling ---- */

/** Returns how many of n bytes to write now, WRITE_BUFFER_BYTES at most; 0: they begin with a block
 * of zeros, which is not written. */
static size_t count_bytes_before_zeros(const laci_writer *writer, const uint8_t *bytes, size_t n) {
  size_t most = n < WRITE_BUFFER_BYTES ? n : WRITE_BUFFER_BYTES, at = 0;
  while (writer->holes && at < most && n - at >= HOLE_BYTES) {
    if (laci_is_zero(bytes + at, HOLE_BYTES)) return at;
    at += HOLE_BYTES;
  }
  return most;
}

/** Skips a block of zeros in the file. */
static lac_status skip_zeros(laci_writer *writer, lac_error *err) {
  if (lseek(writer->file.fd, HOLE_BYTES, SEEK_CUR) < 0)
    return laci_fail_errno(err, writer->file.shown, "cannot write");
  writer->ends_early = true;
  return LAC_OK;
}

static lac_status write_bytes_with_holes(laci_writer *writer, const uint8_t *bytes, size_t n,
                                         lac_error *err) {
  while (n > 0) {
    size_t some = count_bytes_before_zeros(writer, bytes, n);
    if (some == 0) {
      lac_status st = skip_zeros(writer, err);
      if (st) return st;
      bytes += HOLE_BYTES;
      n -= HOLE_BYTES;
      continue;
    }
    ssize_t wrote = write(writer->file.fd, bytes, some);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return laci_fail_errno(err, writer->file.shown, "cannot write");
    writer->ends_early = false;
    bytes += wrote;
    n -= (size_t)wrote;
  }
  return LAC_OK;
}

static lac_status flush_buffer(laci_writer *writer, lac_error *err) {
  size_t n = writer->n;
  writer->n = 0;
  return write_bytes_with_holes(writer, writer->buffer, n, err);
}

lac_status laci_writer_append(laci_writer *writer, const void *bytes, size_t size_bytes,
                              lac_error *err) {
  if (size_bytes > WRITE_BUFFER_BYTES - writer->n) {
    lac_status st = flush_buffer(writer, err);
    if (st) return st;
  }
  if (size_bytes >= WRITE_BUFFER_BYTES)
    return write_bytes_with_holes(writer, bytes, size_bytes, err);
  if (size_bytes) memcpy(writer->buffer + writer->n, bytes, size_bytes);
  writer->n += size_bytes;
  return LAC_OK;
}

/* ---- The end ---- */

lac_status laci_writer_finish(laci_writer *writer, lac_error *err) {
  lac_status st = flush_buffer(writer, err);
  if (!st && writer->ends_early && ftruncate(writer->file.fd, lseek(writer->file.fd, 0, SEEK_CUR)))
    st = laci_fail_errno(err, writer->file.shown, "cannot write");
  if (!st && fsync(writer->file.fd)) st = laci_fail_errno(err, writer->file.shown, "cannot sync");
  laci_free(writer->buffer); /* many finished files may wait for the end of a set */
  writer->buffer = NULL;
  /* Closing the descriptor releases the lock; only another process that writes the same names could
   * notice. */
  if (writer->file.fd >= MOST_DESCRIPTORS) {
    if (close(writer->file.fd) && !st)
      st = laci_fail_errno(err, writer->file.shown, "cannot close");
    writer->file.fd = -1;
  }
  return st;
}

lac_status laci_writer_commit(laci_writer *writer, lac_error *err) {
  return laci_file_set_add(&writer->file, err);
}

lac_status laci_writer_second_name(laci_writer *writer, char **name, lac_error *err) {
  return laci_file_set_add_second_name(&writer->file, name, err);
}

void laci_writer_destroy(laci_writer *writer) {
  if (!writer) return;
  laci_placement_clear(&writer->file);
  laci_free(writer->buffer);
  laci_free(writer);
}

/** Appends the bytes, finishes, commits and destroys the writer. */
static lac_status write_and_commit(laci_writer *writer, const void *bytes, size_t size_bytes,
                                   lac_error *err) {
  lac_status st = laci_writer_append(writer, bytes, size_bytes, err);
  if (!st) st = laci_writer_finish(writer, err);
  if (!st) st = laci_writer_commit(writer, err);
  laci_writer_destroy(writer);
  return st;
}

lac_status laci_file_write_at(int folder, const char *name, const char *shown, const void *bytes,
                              size_t size_bytes, lac_error *err) {
  const laci_write_options options = {.force = true};
  laci_writer *writer = NULL;
  lac_status st = laci_writer_open_at(folder, name, shown, &options, &writer, err);
  return st ? st : write_and_commit(writer, bytes, size_bytes, err);
}

lac_status laci_file_write(const char *path, const void *bytes, size_t size_bytes, bool force,
                           lac_error *err) {
  const laci_write_options options = {.force = force};
  laci_writer *writer = NULL;
  lac_status st = laci_writer_open(path, &options, &writer, err);
  return st ? st : write_and_commit(writer, bytes, size_bytes, err);
}
