/* SPDX-License-Identifier: Apache-2.0
 * Lists and reads the members of a zip archive.
 *
 * The archive ends with a record that says where its directory is. The directory says where each
 * file's own header is, which is followed by the file's bytes. Sizes of 64 bits are in an extra
 * field (zip64), and the end then has a second record for them. All numbers are little-endian. */
#include "data/zip.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/reader.h"
#include "data/inflate_in.h"

enum {
  END_BYTES = 22,
  END64_BYTES = 56,
  LOCATOR_BYTES = 20,
  ENTRY_BYTES = 46,
  LOCAL_BYTES = 30,
  MOST_COMMENT = 65535,
  METHOD_STORED = 0,
  METHOD_DEFLATED = 8,
  FLAG_ENCRYPTED = 1,
  EXTRA_ZIP64 = 1,
  LONGEST_NAME = 4096,
  FIRST_ROOM = 1 << 20,
  BEST_RATIO = 1032, /* maximum number of bytes to which one byte of deflated data expands */
};
#define MAGIC_END 0x06054b50u
#define MAGIC_END64 0x06064b50u
#define MAGIC_LOCATOR 0x07064b50u
#define MAGIC_ENTRY 0x02014b50u
#define MAGIC_LOCAL 0x04034b50u

typedef struct archive {
  laci_reader *reader;
  const char *name;
  laci_arena *arena;
  uint64_t directory, directory_bytes, n_entries;
  lac_error *err;
} archive;

static uint32_t read_u16(const uint8_t *at) { return (uint32_t)at[0] | (uint32_t)at[1] << 8; }
static uint32_t read_u32(const uint8_t *at) { return read_u16(at) | read_u16(at + 2) << 16; }
static uint64_t read_u64(const uint8_t *at) {
  return read_u32(at) | (uint64_t)read_u32(at + 4) << 32;
}

static lac_status fail_archive(const archive *a, const char *why) {
  return laci_fail(a->err, LAC_BAD_FILE, "%s: no whole zip archive: %s", a->name, why);
}

/* ---- The record at the end of the archive ---- */

/* Reads the 64-bit sizes and positions (zip64), if the locator before the end record at offset
 * `end` refers to them. */
static lac_status read_zip64_end_record(archive *a, uint64_t end) {
  uint8_t locator[LOCATOR_BYTES], record[END64_BYTES];
  if (end < LOCATOR_BYTES) return fail_archive(a, "its end lacks the record of 64 bits");
  lac_status st = laci_reader_copy_range(a->reader, (size_t)end - LOCATOR_BYTES, LOCATOR_BYTES,
                                         locator, a->err);
  if (st) return st;
  /* Without a zip64 record, the end record's 32-bit numbers are valid. */
  if (read_u32(locator) != MAGIC_LOCATOR) return LAC_OK;
  uint64_t at = read_u64(locator + 8);
  if (end - LOCATOR_BYTES < END64_BYTES || at > end - LOCATOR_BYTES - END64_BYTES)
    return fail_archive(a, "its end lacks the record of 64 bits");
  st = laci_reader_copy_range(a->reader, (size_t)at, END64_BYTES, record, a->err);
  if (st) return st;
  if (read_u32(record) != MAGIC_END64)
    return fail_archive(a, "its end lacks the record of 64 bits");
  if (read_u32(record + 16) || read_u32(record + 20))
    return laci_fail(a->err, LAC_UNSUPPORTED, "%s: a zip archive of several volumes", a->name);
  a->n_entries = read_u64(record + 32);
  a->directory_bytes = read_u64(record + 40);
  a->directory = read_u64(record + 48);
  return LAC_OK;
}

static lac_status read_end_record(archive *a, const uint8_t *record, uint64_t end) {
  if (read_u16(record + 4) || read_u16(record + 6))
    return laci_fail(a->err, LAC_UNSUPPORTED, "%s: a zip archive of several volumes", a->name);
  a->n_entries = read_u16(record + 10);
  a->directory_bytes = read_u32(record + 12);
  a->directory = read_u32(record + 16);
  lac_status st = LAC_OK;
  if (a->n_entries == UINT16_MAX || a->directory_bytes == UINT32_MAX || a->directory == UINT32_MAX)
    st = read_zip64_end_record(a, end);
  if (st) return st;
  if (a->directory > end || a->directory_bytes > end - a->directory)
    return fail_archive(a, "its directory is not inside it");
  if (a->n_entries > a->directory_bytes / ENTRY_BYTES)
    return fail_archive(a, "its directory is shorter than its number of files");
  return LAC_OK;
}

/* Finds the end record: the last place of its magic number with a comment after it that reaches
 * exactly to the end of the file. */
static lac_status find_end_record(archive *a) {
  size_t size = laci_reader_size(a->reader);
  size_t n = size < END_BYTES + MOST_COMMENT ? size : END_BYTES + MOST_COMMENT;
  if (n < END_BYTES) return fail_archive(a, "it is too short");
  uint8_t *tail = laci_alloc(n, 1);
  if (!tail) return laci_fail_memory(a->err, a->name);
  lac_status st = laci_reader_copy_range(a->reader, size - n, n, tail, a->err);
  bool found = false;
  for (size_t at = n - END_BYTES + 1; !st && !found && at-- > 0;) {
    found = read_u32(tail + at) == MAGIC_END && read_u16(tail + at + 20) == n - END_BYTES - at;
    if (found) st = read_end_record(a, tail + at, size - n + at);
  }
  if (!st && !found) st = fail_archive(a, "its end is missing");
  laci_free(tail);
  return st;
}

/* ---- The directory ---- */

/* Reads a member's sizes and the offset of its local header from its directory entry, or from the
 * entry's extra field (zip64). False: they are malformed. */
static bool read_entry_sizes(const uint8_t *entry, const uint8_t *extra, size_t n_extra,
                             uint64_t *packed, uint64_t *size, uint64_t *local) {
  uint64_t *const wanted[] = {size, packed, local};
  const uint32_t small[] = {read_u32(entry + 24), read_u32(entry + 20), read_u32(entry + 42)};
  const uint8_t *wide = NULL;
  size_t n_wide = 0;
  while (n_extra >= 4 && !wide) {
    size_t n = read_u16(extra + 2);
    if (n > n_extra - 4) return false;
    if (read_u16(extra) == EXTRA_ZIP64) {
      wide = extra + 4;
      n_wide = n;
    }
    extra += 4 + n;
    n_extra -= 4 + n;
  }
  for (int k = 0; k < 3; k++) {
    *wanted[k] = small[k];
    if (small[k] != UINT32_MAX) continue;
    if (n_wide < 8) return false;
    *wanted[k] = read_u64(wide);
    wide += 8;
    n_wide -= 8;
  }
  return true;
}

/* Finds the offset of a member's bytes. They follow the member's local header, at offset `local`,
 * which has a name and an extra field of its own. */
static lac_status find_member_bytes(const archive *a, laci_zip_member *m, uint64_t local) {
  uint8_t head[LOCAL_BYTES];
  if (a->directory < LOCAL_BYTES || local > a->directory - LOCAL_BYTES)
    return fail_archive(a, "a file is not inside it");
  lac_status st = laci_reader_copy_range(a->reader, (size_t)local, sizeof head, head, a->err);
  if (st) return st;
  uint64_t begin = local + LOCAL_BYTES + read_u16(head + 26) + read_u16(head + 28);
  if (read_u32(head) != MAGIC_LOCAL || read_u16(head + 26) != strlen(m->name))
    return fail_archive(a, "a file is not where its directory says");
  if (begin > a->directory || m->packed_size > a->directory - begin)
    return fail_archive(a, "a file is not inside it");
  m->offset = (size_t)begin;
  return LAC_OK;
}

static lac_status read_directory_entry(const archive *a, const uint8_t *entry, size_t n_name,
                                       laci_zip_member *m) {
  const uint8_t *name = entry + ENTRY_BYTES;
  uint64_t packed, size, local;
  if (n_name == 0 || n_name > LONGEST_NAME || memchr(name, 0, n_name))
    return fail_archive(a, "a file without a proper name");
  m->name = laci_arena_text_n(a->arena, (const char *)name, n_name);
  if (!m->name) return laci_fail_memory(a->err, a->name);
  uint32_t method = read_u16(entry + 10);
  if (read_u16(entry + 8) & FLAG_ENCRYPTED)
    return laci_fail(a->err, LAC_UNSUPPORTED, "%s: %s is encrypted", a->name, m->name);
  if (method != METHOD_STORED && method != METHOD_DEFLATED) {
    return laci_fail(a->err, LAC_UNSUPPORTED, "%s: %s is packed by method %u, wanted 0 or 8",
                     a->name, m->name, method);
  }
  if (!read_entry_sizes(entry, name + n_name, read_u16(entry + 30), &packed, &size, &local))
    return fail_archive(a, "a file's sizes are missing");
  m->deflated = method == METHOD_DEFLATED;
  m->crc = read_u32(entry + 16);
  m->packed_size = (size_t)packed;
  m->size_bytes = (size_t)size;
  bool possible = m->deflated ? size / BEST_RATIO <= packed : size == packed;
  if (!possible || size > SIZE_MAX / 2) {
    return laci_fail(a->err, LAC_BAD_FILE, "%s: %s cannot be %llu bytes made of %llu", a->name,
                     m->name, (unsigned long long)size, (unsigned long long)packed);
  }
  return find_member_bytes(a, m, local);
}

static lac_status read_directory(const archive *a, const uint8_t *bytes, laci_zip_member *members) {
  size_t at = 0, size = (size_t)a->directory_bytes;
  for (size_t k = 0; k < (size_t)a->n_entries; k++) {
    const uint8_t *entry = bytes + at;
    if (size - at < ENTRY_BYTES || read_u32(entry) != MAGIC_ENTRY)
      return fail_archive(a, "its directory is cut off");
    size_t n_name = read_u16(entry + 28),
           n = ENTRY_BYTES + n_name + read_u16(entry + 30) + read_u16(entry + 32);
    if (n > size - at) return fail_archive(a, "its directory is cut off");
    lac_status st = read_directory_entry(a, entry, n_name, &members[k]);
    if (st) return st;
    at += n;
  }
  return LAC_OK;
}

static int compare_names(const void *a, const void *b) {
  return strcmp((*(const laci_zip_member *const *)a)->name,
                (*(const laci_zip_member *const *)b)->name);
}

static int compare_member_offsets(const void *a, const void *b) {
  const laci_zip_member *x = *(const laci_zip_member *const *)a,
                        *y = *(const laci_zip_member *const *)b;
  return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Fails if two members have the same name or share bytes. If members could share bytes, a small
 * archive could claim any number of large files. */
static lac_status check_members_disjoint(const archive *a, const laci_zip_member *members,
                                         size_t n) {
  const laci_zip_member **sorted = laci_alloc(n, sizeof *sorted);
  lac_status st = sorted ? LAC_OK : laci_fail_memory(a->err, a->name);
  if (st) return st;
  for (size_t k = 0; k < n; k++) sorted[k] = &members[k];
  qsort(sorted, n, sizeof *sorted, compare_names);
  for (size_t k = 1; k < n && !st; k++) {
    if (strcmp(sorted[k - 1]->name, sorted[k]->name) != 0) continue;
    st = laci_fail(a->err, LAC_BAD_FILE, "%s: two files are called %s", a->name, sorted[k]->name);
  }
  qsort(sorted, n, sizeof *sorted, compare_member_offsets);
  for (size_t k = 1; k < n && !st; k++) {
    if (sorted[k - 1]->packed_size <= sorted[k]->offset - sorted[k - 1]->offset) continue;
    st = fail_archive(a, "two files share bytes");
  }
  laci_free(sorted);
  return st;
}

lac_status laci_zip_list(const laci_zip *zip, laci_arena *arena, laci_zip_member **members,
                         size_t *n, lac_error *err) {
  archive a = {.reader = zip->reader, .name = zip->name, .arena = arena, .err = err};
  *members = NULL;
  *n = 0;
  lac_status st = find_end_record(&a);
  if (st) return st;
  uint8_t *bytes = laci_alloc((size_t)a.directory_bytes, 1);
  laci_zip_member *made = laci_alloc((size_t)a.n_entries, sizeof *made);
  if (!bytes || !made) st = laci_fail_memory(err, zip->name);
  if (!st)
    st = laci_reader_copy_range(zip->reader, (size_t)a.directory, (size_t)a.directory_bytes, bytes,
                                err);
  if (!st) st = read_directory(&a, bytes, made);
  if (!st) st = check_members_disjoint(&a, made, (size_t)a.n_entries);
  laci_free(bytes);
  if (st) {
    laci_free(made);
    return st;
  }
  *members = made;
  *n = (size_t)a.n_entries;
  return LAC_OK;
}

/* ---- Members ---- */

static lac_status fail_member(const laci_zip *zip, const laci_zip_member *m, const char *why,
                              lac_error *err) {
  return laci_fail(err, LAC_BAD_FILE, "%s: %s %s", zip->name, m->name, why);
}

static lac_status inflate_member(const laci_zip *zip, const laci_zip_member *m, uint8_t **out,
                                 lac_error *err) {
  laci_inflater *f = NULL;
  size_t capacity = m->size_bytes < FIRST_ROOM ? m->size_bytes : FIRST_ROOM, n = 0, got = 0;
  uint8_t *bytes = laci_alloc(capacity + 1, 1), *grown;
  lac_status st = bytes ? laci_inflater_create(zip, m, &f, err) : laci_fail_memory(err, zip->name);
  if (!st) st = laci_inflater_read(f, bytes, capacity + 1, &n, err);
  while (!st && !f->end && n == capacity + 1 && capacity < m->size_bytes) {
    size_t more = m->size_bytes - capacity < capacity ? m->size_bytes : 2 * capacity;
    grown = laci_resize(bytes, capacity + 1, more + 1, 1);
    if (!grown) st = laci_fail_memory(err, zip->name);
    if (st) break;
    bytes = grown;
    capacity = more;
    st = laci_inflater_read(f, bytes + n, capacity + 1 - n, &got, err);
    n += got;
  }
  laci_inflater_destroy(f);
  if (!st && n != m->size_bytes) st = fail_member(zip, m, "is damaged or cut off", err);
  if (st) laci_free(bytes);
  else *out = bytes;
  return st;
}

lac_status laci_zip_read(const laci_zip *zip, const laci_zip_member *m, uint8_t **bytes,
                         lac_error *err) {
  *bytes = NULL;
  lac_status st = LAC_OK;
  if (m->deflated) {
    st = inflate_member(zip, m, bytes, err);
  } else {
    *bytes = laci_alloc(m->size_bytes, 1);
    if (!*bytes) return laci_fail_memory(err, zip->name);
    st = laci_reader_copy_range(zip->reader, m->offset, m->size_bytes, *bytes, err);
  }
  if (!st && laci_extend_checksum(0, *bytes, m->size_bytes) != m->crc)
    st = fail_member(zip, m, "has another checksum than its bytes", err);
  if (!st) return LAC_OK;
  laci_free(*bytes);
  *bytes = NULL;
  return st;
}

lac_status laci_zip_read_beginning(const laci_zip *zip, const laci_zip_member *m, size_t wanted,
                                   uint8_t *to, size_t *n, lac_error *err) {
  *n = wanted < m->size_bytes ? wanted : m->size_bytes;
  if (!m->deflated) return laci_reader_copy_range(zip->reader, m->offset, *n, to, err);
  laci_inflater *f = NULL;
  lac_status st = laci_inflater_create(zip, m, &f, err);
  if (!st) st = laci_inflater_read(f, to, *n, n, err);
  laci_inflater_destroy(f);
  return st;
}

lac_status laci_zip_check(const laci_zip *zip, const laci_zip_member *m, lac_error *err) {
  uint8_t *block = laci_alloc(LACI_INFLATE_BLOCK, 1);
  lac_status st = block ? LAC_OK : laci_fail_memory(err, zip->name);
  uint32_t crc = 0;
  for (size_t at = 0; at < m->size_bytes && !st; at += LACI_INFLATE_BLOCK) {
    size_t n = m->size_bytes - at < LACI_INFLATE_BLOCK ? m->size_bytes - at : LACI_INFLATE_BLOCK;
    st = laci_reader_copy_range(zip->reader, m->offset + at, n, block, err);
    if (!st) crc = laci_extend_checksum(crc, block, n);
  }
  laci_free(block);
  if (!st && crc != m->crc) st = fail_member(zip, m, "has another checksum than its bytes", err);
  return st;
}
