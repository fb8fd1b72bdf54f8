/* SPDX-License-Identifier: Apache-2.0
 * Reads a file's bytes by pread, into the caller's memory or into pages that were reserved for
 * them.
 *
 * The pages are reserved without access rights and without memory. A bit for each block says
 * whether its bytes were read; missing blocks are read in runs as long as possible. */
#include "base/reader.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
  BLOCK = 16 << 10,         /* bytes of a block, the unit in which a file is read into pages */
  WATCHED_BLOCK = 64 << 10, /* minimum size in bytes of a block with its own checksum, which detects
                               changes of the file */
  MOST_WATCHED = 1 << 20,   /* maximum number of checksums for a file */
};
static const uint64_t most_claimed = UINT64_C(1) << 40; /* limit of laci_origin.size_bytes */

struct laci_reader {
  char *name;
  size_t size_bytes;
  laci_file_id id;
  bool has_id;
  struct timespec changed; /* time of the file's last change before it was opened */
  int fd;                  /* descriptor of the file; -1: none, or closed by
                              laci_reader_close_descriptor */
  /* where the bytes come from: a virtual file has all functions, a caller's file `fetch` alone, and
   * a real file or memory none */
  laci_origin origin;
  pthread_rwlock_t lock; /* locked for reading while bytes are fetched, for writing while bytes are
                            read into pages */
  bool has_lock;
  uint8_t *pages;  /* [size_bytes] reserved addresses of the file's bytes; NULL: the file is
                      empty */
  uint8_t *blocks; /* a bit for each block: 1 if its bytes are in its pages; NULL: no block was read
                      yet */
  bool opened;     /* all pages are accessible */
  bool outlined;   /* the outline of a virtual file was written to the pages
                      (laci_origin.outline) */
  bool kept;       /* laci_reader_materialise_range has read a part, which must stay in memory */
  bool whole;      /* all bytes are in memory permanently */
  _Atomic uint64_t *sums; /* checksum of each block of `watched` bytes, 0: not read yet; NULL:
                             laci_reader_watch_for_changes was not called */
  size_t watched;         /* size in bytes of a block with its own checksum */
};

/* ---- Opening ---- */

static laci_reader *create_reader(const char *name, size_t size_bytes) {
  laci_reader *reader = laci_alloc(1, sizeof *reader);
  size_t n = strlen(name) + 1;
  if (!reader) return NULL;
  reader->fd = -1;
  reader->size_bytes = size_bytes;
  reader->has_lock = pthread_rwlock_init(&reader->lock, NULL) == 0;
  reader->name = laci_alloc(n, 1);
  if (size_bytes) reader->pages = laci_pages_reserve(size_bytes);
  if (!reader->has_lock || !reader->name || (size_bytes && !reader->pages)) {
    laci_reader_close(reader);
    return NULL;
  }
  memcpy(reader->name, name, n);
  return reader;
}

static laci_file_id file_id_of(const struct stat *info) {
  return (laci_file_id){.device = (uint64_t)info->st_dev, .inode = (uint64_t)info->st_ino};
}

/** Without O_NONBLOCK, opening a pipe would wait for a writer. */
static int open_to_read(const char *path) { return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); }

static lac_status check_file_kind(const char *path, const struct stat *info, lac_error *err) {
  if (!S_ISREG(info->st_mode)) {
    return laci_fail(err, LAC_BAD_FILE, "%s: %s, not a regular file", path,
                     S_ISDIR(info->st_mode) ? "a directory" : "a device or pipe");
  }
  if ((uint64_t)info->st_size > SIZE_MAX / 2) {
    return laci_fail(err, LAC_UNSUPPORTED, "%s: too large for this machine's addresses", path);
  }
  return LAC_OK;
}

static lac_status reader_from_file(const char *path, int fd, laci_reader **reader, lac_error *err) {
  struct stat info;
  if (fstat(fd, &info)) return laci_fail_errno(err, path, "cannot read");
  lac_status st = check_file_kind(path, &info, err);
  if (st) return st;
  *reader = create_reader(path, (size_t)info.st_size);
  if (!*reader) return laci_fail_memory(err, path);
  (*reader)->fd = fd;
  (*reader)->id = file_id_of(&info);
  (*reader)->has_id = true;
  (*reader)->changed = info.st_mtim;
  (*reader)->whole = info.st_size == 0;
  return LAC_OK;
}

lac_status laci_reader_open(const char *path, laci_reader **reader, lac_error *err) {
  *reader = NULL;
  int fd = open_to_read(path);
  if (fd < 0) return laci_fail_errno(err, path, "cannot open");
  lac_status st = reader_from_file(path, fd, reader, err);
  if (st) (void)close(fd);
  return st;
}

/** Makes all pages accessible. */
static lac_status make_pages_accessible(laci_reader *reader, lac_error *err) {
  if (reader->opened || !reader->pages) return LAC_OK;
  if (!laci_pages_commit(reader->pages, reader->size_bytes)) {
    return laci_fail_memory(err, reader->name);
  }
  reader->opened = true;
  return LAC_OK;
}

lac_status laci_reader_open_memory(const char *name, const void *bytes, size_t size_bytes,
                                   laci_reader **reader, lac_error *err) {
  *reader = NULL;
  laci_reader *made = create_reader(name, size_bytes);
  if (!made) return laci_fail_memory(err, name);
  lac_status st = make_pages_accessible(made, err);
  if (st) {
    laci_reader_close(made);
    return st;
  }
  if (size_bytes) memcpy(made->pages, bytes, size_bytes);
  made->whole = made->kept = true;
  *reader = made;
  return LAC_OK;
}

lac_status laci_reader_open_callbacks(const laci_origin *origin, laci_reader **reader,
                                      lac_error *err) {
  *reader = NULL;
  if (origin->size_bytes > most_claimed) {
    return laci_fail(err, LAC_UNSUPPORTED, "%s: %zu bytes, wanted at most 1 TiB", origin->name,
                     origin->size_bytes);
  }
  *reader = create_reader(origin->name, origin->size_bytes);
  if (!*reader) return laci_fail_memory(err, origin->name);
  (*reader)->origin = *origin;
  (*reader)->id = origin->id;
  (*reader)->has_id = origin->write_all != NULL || origin->id.inode != 0;
  (*reader)->whole = origin->size_bytes == 0;
  return LAC_OK;
}

void laci_reader_close(laci_reader *reader) {
  if (!reader) return;
  if (reader->fd >= 0) (void)close(reader->fd);
  if (reader->origin.close) reader->origin.close(reader->origin.context);
  if (reader->has_lock) (void)pthread_rwlock_destroy(&reader->lock);
  laci_pages_destroy(reader->pages, reader->size_bytes);
  laci_free(reader->blocks);
  laci_free(reader->sums);
  laci_free(reader->name);
  laci_free(reader);
}

size_t laci_reader_size(const laci_reader *reader) { return reader->size_bytes; }

const laci_file_id *laci_reader_id(const laci_reader *reader) {
  return reader->has_id ? &reader->id : NULL;
}

const uint8_t *laci_reader_bytes(const laci_reader *reader) { return reader->pages; }

bool laci_reader_contains(const laci_reader *reader, const void *address) {
  uintptr_t at = (uintptr_t)address, begin = (uintptr_t)reader->pages;
  return reader->pages && at >= begin && at - begin < reader->size_bytes;
}

void laci_reader_close_descriptor(laci_reader *reader) {
  if (reader->fd >= 0) (void)close(reader->fd);
  reader->fd = -1;
}

lac_status laci_reader_watch_for_changes(laci_reader *reader, lac_error *err) {
  if (reader->sums) return LAC_OK;
  reader->watched = WATCHED_BLOCK;
  while (reader->size_bytes / reader->watched >= MOST_WATCHED) reader->watched *= 2;
  size_t n = reader->size_bytes / reader->watched + 1;
  reader->sums = laci_alloc(n, sizeof *reader->sums);
  return reader->sums ? LAC_OK : laci_fail_memory(err, reader->name);
}

/* ---- Reading from the file ---- */

/** Fails where the file changed since it was opened. */
static lac_status check_same_file(const laci_reader *reader, int fd, lac_error *err) {
  struct stat info;
  if (fstat(fd, &info)) return laci_fail_errno(err, reader->name, "cannot read on");
  laci_file_id id = file_id_of(&info);
  if (id.device != reader->id.device || id.inode != reader->id.inode) {
    return laci_fail(err, LAC_IO, "%s: was replaced by another file meanwhile", reader->name);
  }
  if ((uint64_t)info.st_size < reader->size_bytes) {
    return laci_fail(err, LAC_IO, "%s: was %zu bytes long, and was cut to %llu meanwhile",
                     reader->name, reader->size_bytes, (unsigned long long)info.st_size);
  }
  if ((uint64_t)info.st_size > reader->size_bytes ||
      info.st_mtim.tv_sec != reader->changed.tv_sec ||
      info.st_mtim.tv_nsec != reader->changed.tv_nsec) {
    return laci_fail(err, LAC_IO, "%s: was changed meanwhile", reader->name);
  }
  return LAC_OK;
}

static lac_status read_from_descriptor(const laci_reader *reader, int fd, size_t offset,
                                       size_t size_bytes, uint8_t *to, lac_error *err) {
  while (size_bytes > 0) {
    ssize_t got = pread(fd, to, size_bytes, (off_t)offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return laci_fail_errno(err, reader->name, "cannot read on");
    if (got == 0) break; /* the file ends here: it was truncated */
    to += got;
    offset += (size_t)got;
    size_bytes -= (size_t)got;
  }
  lac_status st = check_same_file(reader, fd, err);
  if (st || size_bytes == 0) return st;
  return laci_fail(err, LAC_IO, "%s: was %zu bytes long, and was cut to %zu meanwhile",
                   reader->name, reader->size_bytes, offset);
}

static lac_status read_file_range(const laci_reader *reader, size_t offset, size_t size_bytes,
                                  uint8_t *to, lac_error *err) {
  const laci_origin *origin = &reader->origin;
  if (origin->fetch) return origin->fetch(origin->context, offset, size_bytes, to, err);
  if (reader->fd >= 0) return read_from_descriptor(reader, reader->fd, offset, size_bytes, to, err);
  int fd = open_to_read(reader->name);
  if (fd < 0) return laci_fail_errno(err, reader->name, "cannot open again");
  lac_status st = read_from_descriptor(reader, fd, offset, size_bytes, to, err);
  (void)close(fd);
  return st;
}

/* ---- Detecting changes of the file ---- */

static bool is_block_unchanged(laci_reader *reader, size_t block, const uint8_t *bytes, size_t n) {
  uint64_t sum = laci_hash64(bytes, n, 0) | 1, before = 0; /* 0 means: not read yet */
  return atomic_compare_exchange_strong(&reader->sums[block], &before, sum) || before == sum;
}

/** Reads whole blocks and checks their checksums: inner blocks directly into `to`, the first and
 * the last through a buffer. */
static lac_status fetch_and_check_unchanged(laci_reader *reader, size_t offset, size_t size_bytes,
                                            uint8_t *to, lac_error *err) {
  lac_status st = LAC_OK;
  uint8_t *edge = laci_alloc(reader->watched, 1);
  if (!edge) return laci_fail_memory(err, reader->name);
  for (size_t at = offset, end = offset + size_bytes; at < end && !st;) {
    size_t block = at / reader->watched, first = block * reader->watched;
    size_t left = reader->size_bytes - first, n = left < reader->watched ? left : reader->watched;
    bool inside = at == first && end - at >= n;
    uint8_t *bytes = inside ? to + (at - offset) : edge;
    size_t some = first + n - at < end - at ? first + n - at : end - at;
    st = read_file_range(reader, first, n, bytes, err);
    if (!st && !is_block_unchanged(reader, block, bytes, n)) {
      st = laci_fail(err, LAC_IO, "%s: was changed meanwhile", reader->name);
    }
    if (!st && !inside) memcpy(to + (at - offset), edge + (at - first), some);
    at += some;
  }
  laci_free(edge);
  return st;
}

/** Reads a part of the file, and compares it with the first read if changes are to be detected. */
static lac_status read_range_checked(laci_reader *reader, size_t offset, size_t size_bytes,
                                     uint8_t *to, lac_error *err) {
  return reader->sums ? fetch_and_check_unchanged(reader, offset, size_bytes, to, err)
                      : read_file_range(reader, offset, size_bytes, to, err);
}

/* ---- Which bytes are in memory ---- */

static bool is_block_loaded(const laci_reader *reader, size_t block) {
  return reader->blocks[block / 8] >> block % 8 & 1;
}

static bool are_blocks_loaded(const laci_reader *reader, size_t offset, size_t size_bytes) {
  if (reader->whole || size_bytes == 0) return true;
  if (!reader->blocks) return false;
  size_t last = (offset + size_bytes - 1) / BLOCK;
  for (size_t block = offset / BLOCK; block <= last; block++) {
    if (!is_block_loaded(reader, block)) return false;
  }
  return true;
}

/** Reads those of the blocks [first, end) that are not in memory; adjacent ones in one read. */
static lac_status load_blocks(laci_reader *reader, size_t first, size_t end, lac_error *err) {
  size_t n = reader->size_bytes / BLOCK / 8 + 1;
  if (!reader->blocks) reader->blocks = laci_alloc(n, 1);
  if (!reader->blocks) return laci_fail_memory(err, reader->name);
  for (size_t block = first, next; block < end; block = next) {
    for (next = block + 1;
         next < end && is_block_loaded(reader, next) == is_block_loaded(reader, block);)
      next++;
    if (is_block_loaded(reader, block)) continue;
    size_t from = block * BLOCK, to = next * BLOCK;
    if (to > reader->size_bytes) to = reader->size_bytes;
    if (!reader->opened && !laci_pages_commit(reader->pages + from, to - from)) {
      return laci_fail_memory(err, reader->name);
    }
    lac_status st = read_range_checked(reader, from, to - from, reader->pages + from, err);
    if (st) return st;
    for (size_t at = block; at < next; at++) {
      reader->blocks[at / 8] = (uint8_t)(reader->blocks[at / 8] | 1u << at % 8);
    }
  }
  return LAC_OK;
}

static lac_status load_virtual_file(laci_reader *reader, lac_error *err) {
  lac_status st = make_pages_accessible(reader, err);
  if (!st) st = reader->origin.write_all(reader->origin.context, reader->pages, err);
  if (!st) reader->whole = true;
  return st;
}

/* ---- Reading ---- */

bool laci_reader_is_loaded(laci_reader *reader, size_t offset, size_t size_bytes) {
  (void)pthread_rwlock_rdlock(&reader->lock);
  bool there = reader->whole || (reader->kept && are_blocks_loaded(reader, offset, size_bytes));
  (void)pthread_rwlock_unlock(&reader->lock);
  return there;
}

lac_status laci_reader_copy_range(laci_reader *reader, size_t offset, size_t size_bytes, void *to,
                                  lac_error *err) {
  lac_status st = LAC_OK;
  if (size_bytes == 0) return LAC_OK;
  (void)pthread_rwlock_rdlock(&reader->lock);
  if (are_blocks_loaded(reader, offset, size_bytes)) memcpy(to, reader->pages + offset, size_bytes);
  else if (reader->origin.write_all)
    st = reader->origin.fetch(reader->origin.context, offset, size_bytes, to, err);
  else st = read_range_checked(reader, offset, size_bytes, to, err);
  (void)pthread_rwlock_unlock(&reader->lock);
  return st;
}

lac_status laci_reader_load_range(laci_reader *reader, size_t offset, size_t size_bytes,
                                  lac_error *err) {
  if (reader->outlined || are_blocks_loaded(reader, offset, size_bytes)) return LAC_OK;
  lac_status st = make_pages_accessible(reader, err);
  if (st) return st;
  if (!reader->origin.write_all) {
    return load_blocks(reader, offset / BLOCK, (offset + size_bytes - 1) / BLOCK + 1, err);
  }
  st = reader->origin.outline(reader->origin.context, reader->pages, err);
  reader->outlined = st == LAC_OK;
  return st;
}

void laci_reader_release_loaded(laci_reader *reader) {
  if (reader->kept || reader->whole || !reader->pages) return;
  laci_pages_free_memory(reader->pages, reader->size_bytes);
  laci_free(reader->blocks);
  reader->blocks = NULL;
  reader->opened = reader->outlined = false;
}

lac_status laci_reader_materialise_range(laci_reader *reader, size_t offset, size_t size_bytes,
                                         lac_error *err) {
  lac_status st = LAC_OK;
  (void)pthread_rwlock_wrlock(&reader->lock);
  if (size_bytes && !reader->whole) {
    reader->kept = true;
    st = reader->origin.write_all
             ? load_virtual_file(reader, err)
             : load_blocks(reader, offset / BLOCK, (offset + size_bytes - 1) / BLOCK + 1, err);
    if (!st && size_bytes == reader->size_bytes) {
      reader->whole = true;
      laci_reader_close_descriptor(reader); /* all bytes are in memory */
    }
  }
  (void)pthread_rwlock_unlock(&reader->lock);
  return st;
}

/* ---- Whole files ---- */

lac_status laci_file_bytes_read(const char *path, laci_file_bytes *file, lac_error *err) {
  laci_reader *reader;
  *file = (laci_file_bytes){0};
  lac_status st = laci_reader_open(path, &reader, err);
  if (st) return st;
  st = laci_reader_materialise_range(reader, 0, reader->size_bytes, err);
  if (st) {
    laci_reader_close(reader);
    return st;
  }
  *file = (laci_file_bytes){
      .bytes = reader->pages, .size_bytes = reader->size_bytes, .id = reader->id, .reader = reader};
  return LAC_OK;
}

void laci_file_bytes_clear(laci_file_bytes *file) {
  laci_reader_close(file->reader);
  *file = (laci_file_bytes){0};
}
