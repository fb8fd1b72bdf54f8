/* SPDX-License-Identifier: Apache-2.0
 * The records of the pack format, version 1. docs/reference/pack.md describes the format.
 *
 *     head | section, zeros to a multiple of 64 | section, zeros ... | directory, zeros | tail
 *
 * Sections have a fixed order. First come the parts of all files: a part of plain bytes is a
 * section "rest", a packed weight is "values", "index" and maybe "signs". Then come "names",
 * "files", "pieces" and "tensors". Numbers are little-endian. Every byte is covered by a checksum
 * (XXH3, 64 bits) or must be zero. */
#ifndef LACI_PACK_FORMAT_IN_H
#define LACI_PACK_FORMAT_IN_H

#include <stdint.h>

#include "lacuna/dtype.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "records are little-endian, as in memory");

enum { PACK_VERSION = 1, PACK_ALIGNMENT = 64 };

/* The first and last bytes of a pack. No text begins with such bytes, and a transfer in text mode
 * would change them. */
#define PACK_HEAD_MAGIC "\x89LAC\r\n\x1a\n"
#define PACK_TAIL_MAGIC "LACends\n"
#define PACK_LAYOUT "rows1"

/** A text of up to 8 bytes, padded with zeros to 8. */
typedef struct pack_word {
  char text[8];
} pack_word;

/** Returns the name of an element type in records: the first 8 letters of its name, or an
 * abbreviation where two types would have the same. */
static inline const char *pack_dtype_word(lac_dtype dtype) {
  if (dtype == LAC_DTYPE_F8E4M3FNUZ) return "f8e4m3uz";
  return dtype == LAC_DTYPE_F8E5M2FNUZ ? "f8e5m2fn" : lac_dtype_name(dtype);
}

typedef struct pack_head {
  pack_word magic;
  uint32_t version, alignment;
  uint8_t zero[40];
  uint64_t hash; /* checksum of the bytes of this record before this field */
} pack_head;

typedef struct pack_tail {
  uint64_t directory_at, n_sections, directory_hash;
  uint64_t file_bytes; /* size of the whole pack, in bytes */
  uint8_t zero[16];
  pack_word magic;
  uint64_t hash; /* checksum of the bytes of this record before this field */
} pack_tail;

/** An entry of the directory, which describes one section. */
typedef struct pack_section {
  pack_word kind;
  uint64_t offset, size_bytes, hash;
} pack_section;

/** An entry of the section "files", for one original file. Its parts follow those of the file
 * before it. */
typedef struct pack_file {
  uint64_t name; /* offset of the file's name in the section "names", where it ends with a zero
                    byte */
  uint64_t size_bytes;
  uint64_t hash; /* checksum of the original file, computed part by part: the checksum of the parts
                    before a part is the seed for it */
  uint64_t n_parts;
} pack_file;

/** The bytes of the section "pieces", one for each part of all files in order: a part is plain
 * bytes (rest) or a packed weight (tensor). */
enum { PACK_PART_REST = 'r', PACK_PART_TENSOR = 't' };

/** An entry of the section "tensors", for one packed weight, in the order of the parts. */
typedef struct pack_tensor {
  uint64_t name; /* offset of the weight's name in the section "names" */
  pack_word dtype, layout;
  uint32_t n, m;
  int64_t outer, columns, inner, run;
  uint64_t fill;
} pack_tensor;

_Static_assert(sizeof(pack_head) == 64 && sizeof(pack_tail) == 64, "records have no gaps");
_Static_assert(sizeof(pack_section) == 32 && sizeof(pack_file) == 32, "records have no gaps");
_Static_assert(sizeof(pack_tensor) == 72, "records have no gaps");

#endif
