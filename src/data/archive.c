/* SPDX-License-Identifier: Apache-2.0
 * Reads tar archives with libarchive, which requests bytes by callbacks; the callbacks read from a
 * part of a file. After the library has read a member's header, the number of bytes that it has
 * consumed gives the member's position. The first bytes at that position are compared with the
 * first bytes that the library returns for the member. So a compressed archive, or a wrong
 * position, is an error and never gives bytes of another file.
 *
 * With LAC_ARCHIVE_LOADED (-DLAC_ARCHIVE=LOAD) the library is not linked but loaded when the first
 * archive is read: a package for many systems does without it, and what it links, until then. */
#include "data/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/reader.h"

enum { BLOCK = 4096, SECTOR = 512, COMPARED = 64 };

#define FUNCTIONS(X)                 \
  X(archive_entry_filetype)          \
  X(archive_entry_hardlink)          \
  X(archive_entry_pathname)          \
  X(archive_entry_size)              \
  X(archive_error_string)            \
  X(archive_filter_bytes)            \
  X(archive_read_data_block)         \
  X(archive_read_free)               \
  X(archive_read_new)                \
  X(archive_read_next_header)        \
  X(archive_read_open2)              \
  X(archive_read_support_format_tar) \
  X(archive_set_error)

typedef struct functions {
#define FIELD(name) __typeof__(name) *name;
  FUNCTIONS(FIELD)
#undef FIELD
} functions;

/* ---- The library: linked, or loaded when it is first needed ---- */

#ifdef LAC_ARCHIVE_LOADED

static const char LIBRARY[] = "libarchive.so.13"; /* the name since libarchive 3.0, of 2011 */
static functions tar_library;
static char why_missing[256]; /* why the library could not be loaded; empty: it was */
static pthread_once_t loaded = PTHREAD_ONCE_INIT;

static void load_library(void) {
  void *found, *const library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    (void)snprintf(why_missing, sizeof why_missing, "%s", why ? why : LIBRARY);
    return;
  }
#define FIND(name)                                                                       \
  found = dlsym(library, #name);                                                         \
  if (!found) (void)snprintf(why_missing, sizeof why_missing, "%s: no " #name, LIBRARY); \
  else memcpy(&tar_library.name, &found, sizeof found);
  FUNCTIONS(FIND)
#undef FIND
}

static lac_status check_library(const char *archive, lac_error *err) {
  (void)pthread_once(&loaded, load_library);
  if (!why_missing[0]) return LAC_OK;
  return laci_fail(err, LAC_UNSUPPORTED,
                   "%s: libarchive, which reads it, cannot be loaded (%s): wanted the system's "
                   "package (libarchive13, or libarchive), or the archive unpacked",
                   archive, why_missing);
}

#else

static const functions tar_library = {
#define ADDRESS(name) .name = name,
    FUNCTIONS(ADDRESS)
#undef ADDRESS
};

static lac_status check_library(const char *archive, lac_error *err) {
  (void)archive, (void)err;
  return LAC_OK;
}

#endif

typedef struct feed {
  const laci_archive *archive;
  size_t at;  /* bytes of the archive that libarchive has read or skipped so far */
  size_t end; /* byte at which the last member found so far ends */
  uint8_t block[BLOCK];
  lac_status status; /* status of reading the file */
  lac_error *err;
} feed;

/* ---- Callbacks for libarchive ---- */

static la_ssize_t read_archive_block(struct archive *tar, void *context, const void **bytes) {
  feed *f = context;
  size_t left = f->archive->n - f->at, n = left < BLOCK ? left : BLOCK;
  f->status =
      laci_reader_copy_range(f->archive->reader, f->archive->offset + f->at, n, f->block, f->err);
  if (f->status) {
    tar_library.archive_set_error(tar, -1, "cannot be read");
    return ARCHIVE_FATAL;
  }
  f->at += n;
  *bytes = f->block;
  return (la_ssize_t)n;
}

static la_int64_t skip_bytes(struct archive *tar, void *context, la_int64_t wanted) {
  feed *f = context;
  size_t left = f->archive->n - f->at;
  (void)tar;
  if (wanted < 0) return 0;
  size_t n = (uint64_t)wanted < left ? (size_t)wanted : left;
  f->at += n;
  return (la_int64_t)n;
}

/* ---- Visiting the archive's files ---- */

static lac_status fail_archive(const feed *f, const char *what) {
  if (f->status) return f->status;
  return laci_fail(f->err, LAC_BAD_FILE, "%s: no whole tar archive: %s", f->archive->name,
                   what ? what : "it is damaged");
}

/** Checks that the archive ends with sectors of zeros; otherwise it was cut off. They must come
 * after all members, since an archive inside this one may end with such sectors, too. */
static lac_status check_zero_sectors_at_end(feed *f) {
  const laci_archive *a = f->archive;
  uint8_t end[2 * SECTOR];
  if (a->n < f->end + sizeof end) return fail_archive(f, "it is cut off");
  lac_status st =
      laci_reader_copy_range(a->reader, a->offset + a->n - sizeof end, sizeof end, end, f->err);
  for (size_t k = 0; k < sizeof end && !st; k++) {
    if (end[k]) return fail_archive(f, "it is cut off: it does not end as archives do");
  }
  return st;
}

/** Fails unless the first bytes that libarchive returns for the member equal those at the member's
 * position in the file. */
static lac_status compare_first_bytes(const feed *f, struct archive *tar,
                                      const laci_archive_member *member) {
  const void *bytes = NULL;
  uint8_t there[COMPARED];
  size_t n = 0;
  la_int64_t at = 0;
  int code = tar_library.archive_read_data_block(tar, &bytes, &n, &at);
  if (code != ARCHIVE_OK) return fail_archive(f, tar_library.archive_error_string(tar));
  if (n > COMPARED) n = COMPARED;
  if (n > member->n) n = member->n;
  lac_status st = laci_reader_copy_range(f->archive->reader, member->offset, n, there, f->err);
  if (st || (at == 0 && memcmp(there, bytes, n) == 0)) return st;
  return laci_fail(f->err, LAC_BAD_FILE,
                   "%s: '%s' is not stored in it as it is (compressed, sparse); wanted a plain tar "
                   "archive",
                   f->archive->name, member->name);
}

static lac_status visit_archive_entry(feed *f, struct archive *tar, struct archive_entry *entry,
                                      laci_archive_visit *visit, void *context) {
  const laci_archive *a = f->archive;
  const char *name = tar_library.archive_entry_pathname(entry);
  const la_int64_t size = tar_library.archive_entry_size(entry),
                   at = tar_library.archive_filter_bytes(tar, 0);
  f->end = at < 0 ? 0 : (size_t)at;
  if (tar_library.archive_entry_filetype(entry) != AE_IFREG ||
      tar_library.archive_entry_hardlink(entry) || size < 0) {
    return LAC_OK;
  }
  if (!name) return fail_archive(f, "a file without a name");
  if (at < 0 || (uint64_t)at > a->n || (uint64_t)size > a->n - (uint64_t)at) {
    return laci_fail(f->err, LAC_BAD_FILE, "%s: it is cut off inside of '%s'", a->name, name);
  }
  f->end += ((size_t)size + SECTOR - 1) / SECTOR * SECTOR;
  laci_archive_member member = {name, a->offset + (size_t)at, (size_t)size};
  lac_status st = size ? compare_first_bytes(f, tar, &member) : LAC_OK;
  return st ? st : visit(context, &member, f->err);
}

lac_status laci_archive_visit_files(const laci_archive *archive, laci_archive_visit *visit,
                                    void *context, lac_error *err) {
  feed f = {.archive = archive, .err = err};
  lac_status st = check_library(archive->name, err);
  if (st) return st;
  struct archive *tar = tar_library.archive_read_new();
  if (!tar) return laci_fail_memory(err, archive->name);
  st = check_zero_sectors_at_end(&f);
  bool opened = !st && tar_library.archive_read_support_format_tar(tar) == ARCHIVE_OK &&
                tar_library.archive_read_open2(tar, &f, NULL, read_archive_block, skip_bytes,
                                               NULL) == ARCHIVE_OK;
  if (!st && !opened) st = fail_archive(&f, tar_library.archive_error_string(tar));
  while (!st) {
    struct archive_entry *entry;
    int code = tar_library.archive_read_next_header(tar, &entry);
    if (code == ARCHIVE_EOF) {
      st = check_zero_sectors_at_end(&f);
      break;
    }
    if (code < ARCHIVE_WARN) st = fail_archive(&f, tar_library.archive_error_string(tar));
    else st = visit_archive_entry(&f, tar, entry, visit, context);
    if (!st && laci_interrupted()) st = laci_fail(err, LAC_INTERRUPTED, "interrupted");
  }
  (void)tar_library.archive_read_free(tar);
  return st;
}
