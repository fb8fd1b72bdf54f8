/* SPDX-License-Identifier: Apache-2.0
 * Zip archives, as far as they hold files that are stored or deflated: what is in them, where it
 * is, and its bytes.
 *
 * The directory at the end is what counts; every size and place in it is checked against the file
 * before it is believed, and no two files share bytes. Encrypted archives, those of several volumes
 * and links to other places are none of ours. Next: npz.h. */
#ifndef LACI_DATA_ZIP_H
#define LACI_DATA_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_arena laci_arena;
typedef struct laci_reader laci_reader;

/** An archive: a whole file, borrowed, and its name for messages. */
typedef struct laci_zip {
  laci_reader *reader;
  const char *name;
} laci_zip;

typedef struct laci_zip_member {
  const char *name;   /* arena; a name only, never a path to be written to */
  size_t offset;      /* of its first byte in the archive */
  size_t packed_size; /* bytes that it takes there */
  size_t size_bytes;  /* its own; equal where it is stored as it is */
  bool deflated;
  uint32_t crc; /* of its own bytes */
} laci_zip_member;

/** *members: [*n] in the directory's order, laci_alloc; their names live in the arena. Reads no
 * member. Fails LAC_BAD_FILE for what is no whole zip archive, for two
 * members of one name, for members that share bytes, and for a size that deflate cannot come to;
 * LAC_UNSUPPORTED for other methods, encryption and several volumes; LAC_IO, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_zip_list(const laci_zip *zip, laci_arena *arena,
                                        laci_zip_member **members, size_t *n, lac_error *err);

/** All bytes of a member, checked by size and checksum: laci_alloc. Memory grows with what is
 * really there, not with what the directory says. Fails LAC_BAD_FILE, LAC_IO, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_zip_read(const laci_zip *zip, const laci_zip_member *member,
                                        uint8_t **bytes, lac_error *err);

/** The first bytes of a member, `wanted` of them or as many as there are; nothing is checked. */
LAC_MUST_CHECK lac_status laci_zip_peek(const laci_zip *zip, const laci_zip_member *member,
                                        size_t wanted, uint8_t *to, size_t *n, lac_error *err);

/** Reads a stored member once, a part at a time, and compares its checksum. Fails LAC_BAD_FILE,
 * LAC_IO, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_zip_check(const laci_zip *zip, const laci_zip_member *member,
                                         lac_error *err);

#endif
