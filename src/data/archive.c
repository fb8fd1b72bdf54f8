/* SPDX-License-Identifier: Apache-2.0
 * Reads tar archives with libarchive, which requests bytes by callbacks; the callbacks read from a
 * part of a file. After the library has read a member's header, the number of bytes that it has
 * consumed gives the member's position. The first bytes at that position are compared with the
 * first bytes that the library returns for the member. So a compressed archive, or a wrong
 * position, is an error and never gives bytes of another file. */
#include "data/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/reader.h"

enum { BLOCK = 4096, SECTOR = 512, COMPARED = 64 };

typedef struct feed {
  const laci_archive *archive;
  size_t at;  /* bytes of the archive that libarchive has read or skipped so far */
  size_t end; /* end of the last member found so far */
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
    archive_set_error(tar, -1, "cannot be read");
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

/* ---- Walking ---- */

static lac_status fail_archive(const feed *f, const char *what) {
  if (f->status) return f->status;
  return laci_fail(f->err, LAC_BAD_FILE, "%s: no whole tar archive: %s", f->archive->name,
                   what ? what : "it is damaged");
}

/** Checks that the archive ends with sectors of zeros; otherwise it was cut off. They must be after
 * all members, since an archive inside this one may end with such sectors, too. */
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

/** Fails unless the first bytes that libarchive returns for the member are those at its position.
 * */
static lac_status compare_first_bytes(const feed *f, struct archive *tar,
                                      const laci_archive_member *member) {
  const void *bytes = NULL;
  uint8_t there[COMPARED];
  size_t n = 0;
  la_int64_t at = 0;
  int code = archive_read_data_block(tar, &bytes, &n, &at);
  if (code != ARCHIVE_OK) return fail_archive(f, archive_error_string(tar));
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
  const char *name = archive_entry_pathname(entry);
  const la_int64_t size = archive_entry_size(entry), at = archive_filter_bytes(tar, 0);
  f->end = at < 0 ? 0 : (size_t)at;
  if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) || size < 0) {
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
  struct archive *tar = archive_read_new();
  if (!tar) return laci_fail_memory(err, archive->name);
  lac_status st = check_zero_sectors_at_end(&f);
  bool opened =
      !st && archive_read_support_format_tar(tar) == ARCHIVE_OK &&
      archive_read_open2(tar, &f, NULL, read_archive_block, skip_bytes, NULL) == ARCHIVE_OK;
  if (!st && !opened) st = fail_archive(&f, archive_error_string(tar));
  while (!st) {
    struct archive_entry *entry;
    int code = archive_read_next_header(tar, &entry);
    if (code == ARCHIVE_EOF) {
      st = check_zero_sectors_at_end(&f);
      break;
    }
    if (code < ARCHIVE_WARN) st = fail_archive(&f, archive_error_string(tar));
    else st = visit_archive_entry(&f, tar, entry, visit, context);
    if (!st && laci_interrupted()) st = laci_fail(err, LAC_INTERRUPTED, "interrupted");
  }
  (void)archive_read_free(tar);
  return st;
}
