/* SPDX-License-Identifier: Apache-2.0
 * The records of the pack format, version 1. docs/reference/pack.md describes the format.
 *
 *     head | section, zeros to a multiple of 64 | section, zeros ... | directory, zeros | tail
 *
 * Sections have a fixed order: the parts of all files (a "rest", or "values", "index" and maybe
 * "signs"), then "names", "files", "pieces", "tensors". Everything is little-endian; every byte is
 * covered by a checksum (XXH3, 64 bits) or must be zero. */
#ifndef LACI_PACK_FORMAT_IN_H
#define LACI_PACK_FORMAT_IN_H

#include <stdint.h>

#include "lacuna/dtype.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "records are little-endian, as in memory");

enum { PACK_VERSION = 1, PACK_ALIGNMENT = 64 };

/* Bytes that no text begins with, and that a transfer in text mode would change. */
#define PACK_HEAD_MAGIC "\x89LAC\r\n\x1a\n"
#define PACK_TAIL_MAGIC "LACends\n"
#define PACK_LAYOUT "rows1"

/** A text of up to 8 bytes, padded with zeros. */
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
  uint64_t hash; /* of the bytes before it */
} pack_head;

typedef struct pack_tail {
  uint64_t directory_at, n_sections, directory_hash;
  uint64_t file_bytes; /* bytes of the whole pack */
  uint8_t zero[16];
  pack_word magic;
  uint64_t hash; /* of the bytes before it */
} pack_tail;

/** An entry of the directory, for one section. */
typedef struct pack_section {
  pack_word kind;
  uint64_t offset, size_bytes, hash;
} pack_section;

/** An entry of the section "files". The parts of a file follow those of the file before it. */
typedef struct pack_file {
  uint64_t name; /* offset in the section "names" of a zero-terminated name */
  uint64_t size_bytes;
  uint64_t hash; /* hash of the file's bytes: the hash of each part takes the hash of the parts
                    before it as its seed */
  uint64_t n_parts;
} pack_file;

/** The section "pieces": one byte for each part of all files, in order. */
enum { PACK_PART_REST = 'r', PACK_PART_TENSOR = 't' };

/** An entry of the section "tensors", in the order of the parts. */
typedef struct pack_tensor {
  uint64_t name; /* offset in the section "names" */
  pack_word dtype, layout;
  uint32_t n, m;
  int64_t outer, columns, inner, run;
  uint64_t fill;
} pack_tensor;

_Static_assert(sizeof(pack_head) == 64 && sizeof(pack_tail) == 64, "records have no gaps");
_Static_assert(sizeof(pack_section) == 32 && sizeof(pack_file) == 32, "records have no gaps");
_Static_assert(sizeof(pack_tensor) == 72, "records have no gaps");

#endif
