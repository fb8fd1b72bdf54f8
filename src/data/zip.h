/* SPDX-License-Identifier: Apache-2.0
 * Reads zip archives of stored or deflated files: lists them, and reads their bytes.
 *
 * Only the directory at the end is used. Every size and position in it is checked against the file,
 * and no two files may share bytes. Encrypted archives, those of several volumes and links are not
 * supported. Next: npz.h. */
#ifndef LACI_DATA_ZIP_H
#define LACI_DATA_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_arena laci_arena;
typedef struct laci_reader laci_reader;

/** A zip archive: the whole file that `reader` reads (borrowed), and its name for messages. */
typedef struct laci_zip {
  laci_reader *reader;
  const char *name;
} laci_zip;

typedef struct laci_zip_member {
  const char *name;   /* the member's name, in the arena; never used as a path to write to */
  size_t offset;      /* offset of the member's first byte in the archive */
  size_t packed_size; /* number of the member's bytes in the archive */
  size_t size_bytes;  /* number of bytes after decompression; equal to packed_size if the member is
                         stored */
  bool deflated;
  uint32_t crc; /* CRC-32 of the bytes after decompression */
} laci_zip_member;

/** Lists the archive's members: *members [*n], in the directory's order, freed by laci_free; their
 * names live in the arena. Member data are not read. Fails LAC_BAD_FILE for anything but a complete
 * zip archive, for two members of one name, for members that share bytes, and for a size that
 * deflate cannot reach; LAC_UNSUPPORTED for other methods, encryption and several volumes; LAC_IO,
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_zip_list(const laci_zip *zip, laci_arena *arena,
                                        laci_zip_member **members, size_t *n, lac_error *err);

/** Reads all bytes of a member and checks size and checksum; *bytes is freed by laci_free. Memory
 * grows with the data that are really there, not with the size in the directory. Fails
 * LAC_BAD_FILE, LAC_IO, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_zip_read(const laci_zip *zip, const laci_zip_member *member,
                                        uint8_t **bytes, lac_error *err);

/** Reads the first `wanted` bytes of a member, or all if it has fewer; *n: the number of bytes
 * read. The checksum is not checked. */
LAC_MUST_CHECK lac_status laci_zip_read_beginning(const laci_zip *zip,
                                                  const laci_zip_member *member, size_t wanted,
                                                  uint8_t *to, size_t *n, lac_error *err);

/** Checks a stored (not deflated) member: reads it once, a part at a time, and compares its
 * checksum. Fails LAC_BAD_FILE, LAC_IO, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_zip_check(const laci_zip *zip, const laci_zip_member *member,
                                         lac_error *err);

/** Opens a deflated member as a file whose parts are decompressed when they are read. Decompresses
 * it once to check size and checksum, and keeps states of zlib at equal distances, so that a part
 * takes at most one distance more than its own bytes. The archive must outlive the reader. Fails
 * LAC_BAD_FILE, LAC_IO, LAC_NO_MEMORY. (zip_reader.c) */
LAC_MUST_CHECK lac_status laci_zip_open_member(const laci_zip *zip, const laci_zip_member *member,
                                               laci_reader **reader, lac_error *err);
/** Estimates the bytes of memory that a reader of laci_zip_open_member holds. */
uint64_t laci_zip_member_reader_bytes(const laci_zip_member *member);

#endif
