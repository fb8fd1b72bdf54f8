/* SPDX-License-Identifier: Apache-2.0
 * Makes zip archives of .npy files byte by byte, valid ones and broken ones. */
#ifndef TESTS_SUPPORT_ZIP_FILE_H
#define TESTS_SUPPORT_ZIP_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/** An archive that is being made, and where its fields are, for tests that change them. */
typedef struct zip_file {
  size_t n;
  uint8_t at[1 << 18];
  size_t directory, end; /* offsets of the directory and of the end record; set by zip_finish */
  int n_members;
  struct {
    size_t local, entry;
  } members[8];
  uint8_t entries[4096];
  size_t n_entries;
  bool wide; /* entries that are added from now on have 64-bit sizes */
} zip_file;

static inline void zip_number(uint8_t *at, uint64_t value, int n_bytes) {
  for (int k = 0; k < n_bytes; k++) at[k] = (uint8_t)(value >> (8 * k));
}

/** Writes a .npy file of version 1; returns its number of bytes. */
static inline size_t npy_bytes(uint8_t *to, const char *header, const void *payload, size_t n) {
  size_t length = strlen(header);
  memcpy(to, "\x93NUMPY\1\0", 8);
  zip_number(to + 8, length, 2);
  memcpy(to + 10, header, length);
  if (n) memcpy(to + 10 + length, payload, n);
  return 10 + length + n;
}

static inline size_t zip_deflate(uint8_t *to, size_t capacity, const void *bytes, size_t n) {
  z_stream stream = {0};
  if (deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY) != Z_OK) abort();
  stream.next_in = (Bytef *)(uintptr_t)bytes;
  stream.avail_in = (uInt)n;
  stream.next_out = to;
  stream.avail_out = (uInt)capacity;
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) abort();
  (void)deflateEnd(&stream);
  return stream.total_out;
}

static inline void zip_add(zip_file *z, const char *name, const void *bytes, size_t n,
                           bool deflated) {
  size_t n_name = strlen(name), local = z->n;
  uint8_t *head = z->at + local, *entry = z->entries + z->n_entries;
  size_t begin = local + 30 + n_name, n_extra = z->wide ? 28 : 0;
  size_t packed = n;
  if (deflated) packed = zip_deflate(z->at + begin, sizeof z->at - begin, bytes, n);
  else memcpy(z->at + begin, bytes, n);
  uint64_t crc = crc32(0, bytes, (uInt)n);
  memset(head, 0, 30);
  memcpy(head, "PK\3\4\x14", 5);
  zip_number(head + 8, deflated ? 8 : 0, 2);
  zip_number(head + 14, crc, 4);
  zip_number(head + 18, packed, 4);
  zip_number(head + 22, n, 4);
  zip_number(head + 26, n_name, 2);
  memcpy(head + 30, name, n_name);
  memset(entry, 0, 46);
  memcpy(entry, "PK\1\2\x14\0\x14", 7);
  zip_number(entry + 10, deflated ? 8 : 0, 2);
  zip_number(entry + 16, crc, 4);
  zip_number(entry + 20, z->wide ? UINT32_MAX : packed, 4);
  zip_number(entry + 24, z->wide ? UINT32_MAX : n, 4);
  zip_number(entry + 28, n_name, 2);
  zip_number(entry + 30, n_extra, 2);
  zip_number(entry + 42, z->wide ? UINT32_MAX : local, 4);
  memcpy(entry + 46, name, n_name);
  if (z->wide) {
    uint8_t *extra = entry + 46 + n_name;
    zip_number(extra, 1, 2);
    zip_number(extra + 2, 24, 2);
    zip_number(extra + 4, n, 8);
    zip_number(extra + 12, packed, 8);
    zip_number(extra + 20, local, 8);
  }
  z->members[z->n_members].local = local;
  z->members[z->n_members++].entry = z->n_entries;
  z->n = begin + packed;
  z->n_entries += 46 + n_name + n_extra;
}

/** Appends the directory and the end record. */
static inline void zip_finish(zip_file *z) {
  z->directory = z->n;
  memcpy(z->at + z->n, z->entries, z->n_entries);
  z->n += z->n_entries;
  if (z->wide) {
    uint8_t *record = z->at + z->n, *locator = record + 56;
    memset(record, 0, 76);
    memcpy(record, "PK\6\6", 4);
    zip_number(record + 4, 44, 8);
    zip_number(record + 24, (uint64_t)z->n_members, 8);
    zip_number(record + 32, (uint64_t)z->n_members, 8);
    zip_number(record + 40, z->n_entries, 8);
    zip_number(record + 48, z->directory, 8);
    memcpy(locator, "PK\6\7", 4);
    zip_number(locator + 8, z->n, 8);
    zip_number(locator + 16, 1, 4);
    z->n += 76;
  }
  uint8_t *end = z->at + z->n;
  z->end = z->n;
  memset(end, 0, 22);
  memcpy(end, "PK\5\6", 4);
  zip_number(end + 8, z->wide ? UINT16_MAX : (uint64_t)z->n_members, 2);
  zip_number(end + 10, z->wide ? UINT16_MAX : (uint64_t)z->n_members, 2);
  zip_number(end + 12, z->wide ? UINT32_MAX : z->n_entries, 4);
  zip_number(end + 16, z->wide ? UINT32_MAX : z->directory, 4);
  z->n += 22;
}

#endif
