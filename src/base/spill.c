/* SPDX-License-Identifier: Apache-2.0
 * A file without a name, which is filled from its start. Every part begins at a page and has its
 * own read-only mapping. Nothing is written through a mapping: if the disk is full, that would
 * raise a signal, but a failed write() is an ordinary error. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* declares madvise */
#endif
#include "base/spill.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/temporary.h"

enum {
  PART_ALIGNMENT = 64 << 10, /* alignment of the parts in the file: a multiple of any page size */
  HOLE = 4096,               /* size of blocks of zeros that are not written */
  WRITE_BYTES = 1 << 20,
};

typedef struct mapping {
  void *pages;
  size_t size_bytes;
} mapping;

struct laci_spill {
  char *folder; /* for messages */
  int fd;
  uint64_t size_bytes;
  mapping *mappings;
  size_t n, capacity;
  laci_spill *next; /* next spill of the same owner */
};

static const char *find_default_folder(void) {
  const char *folder = getenv("TMPDIR");
  if (folder && *folder) return folder;
  return access("/var/tmp", W_OK) == 0 ? "/var/tmp" : "/tmp";
}

lac_status laci_spill_create(const char *folder, laci_spill **spill, lac_error *err) {
  *spill = NULL;
  if (!folder) folder = find_default_folder();
  laci_spill *made = laci_alloc(1, sizeof *made);
  if (!made) return laci_fail_memory(err, "a temporary file");
  made->fd = -1;
  made->folder = laci_alloc(strlen(folder) + 1, 1);
  lac_status st = made->folder ? LAC_OK : laci_fail_memory(err, "a temporary file");
  if (!st) {
    memcpy(made->folder, folder, strlen(folder));
    made->fd = laci_temporary_open_nameless(folder);
    if (made->fd < 0) st = laci_fail_errno(err, folder, "cannot make a temporary file");
  }
  if (st) laci_spill_destroy(made);
  else *spill = made;
  return st;
}

static void destroy_spill_file(laci_spill *spill) {
  for (size_t at = 0; at < spill->n; at++) {
    (void)munmap(spill->mappings[at].pages, spill->mappings[at].size_bytes);
  }
  if (spill->fd >= 0) (void)close(spill->fd);
  laci_free(spill->mappings);
  laci_free(spill->folder);
  laci_free(spill);
}

void laci_spill_destroy(laci_spill *spill) {
  while (spill) {
    laci_spill *next = spill->next;
    destroy_spill_file(spill);
    spill = next;
  }
}

void laci_spill_add_to_list(laci_spill **all, laci_spill *take) {
  if (!take) return;
  take->next = *all;
  *all = take;
}

/** Returns how many of n bytes to write in one call; 0: they begin with zeros to be skipped. */
static size_t count_bytes_before_zeros(const uint8_t *bytes, size_t n) {
  size_t at = 0;
  while (at < n && at < WRITE_BYTES) {
    size_t here = n - at < HOLE ? n - at : HOLE;
    if (laci_is_zero(bytes + at, here)) break;
    at += here;
  }
  return at;
}

static lac_status write_bytes_with_holes(const laci_spill *spill, const char *name,
                                         const uint8_t *bytes, size_t n, lac_error *err) {
  off_t offset = (off_t)spill->size_bytes;
  while (n > 0) {
    size_t some = count_bytes_before_zeros(bytes, n);
    ssize_t wrote = some ? pwrite(spill->fd, bytes, some, offset) : (ssize_t)(n < HOLE ? n : HOLE);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      lac_status st = laci_fail_errno(err, spill->folder, "cannot write to a temporary file");
      return laci_fail_with_prefix(err, st, "%s", name);
    }
    bytes += wrote;
    offset += wrote;
    n -= (size_t)wrote;
  }
  return LAC_OK;
}

lac_status laci_spill_append(laci_spill *spill, const char *name, const void *bytes, size_t n,
                             const uint8_t **view, lac_error *err) {
  static const uint8_t nothing[1];
  void *array = spill->mappings;
  *view = nothing;
  if (n == 0) return LAC_OK;
  if (!laci_grow(&array, spill->n, &spill->capacity, sizeof *spill->mappings)) {
    return laci_fail_memory(err, name);
  }
  spill->mappings = array;
  uint64_t end = spill->size_bytes + (n + PART_ALIGNMENT - 1) / PART_ALIGNMENT * PART_ALIGNMENT;
  lac_status st = write_bytes_with_holes(spill, name, bytes, n, err);
  if (!st && ftruncate(spill->fd, (off_t)end)) { /* the bytes may end with zeros that were not
                                                    written */
    st = laci_fail_errno(err, spill->folder, "cannot write to a temporary file");
    st = laci_fail_with_prefix(err, st, "%s", name);
  }
  void *pages = MAP_FAILED;
  if (!st) pages = mmap(NULL, n, PROT_READ, MAP_SHARED, spill->fd, (off_t)spill->size_bytes);
  if (!st && pages == MAP_FAILED) st = laci_fail_memory(err, name);
  /* make what was written zeros again: a later write may skip its zeros and rely on these */
  if (st) {
    (void)!ftruncate(spill->fd, (off_t)spill->size_bytes);
    return st;
  }
  spill->mappings[spill->n++] = (mapping){pages, n};
  spill->size_bytes = end;
  *view = pages;
  return LAC_OK;
}

void laci_spill_release_view(const uint8_t *view, size_t n) {
  if (n > 0) (void)madvise((void *)(uintptr_t)view, n, MADV_DONTNEED);
}

uint64_t laci_spill_size_bytes(const laci_spill *spill) { return spill->size_bytes; }
