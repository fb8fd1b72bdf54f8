/* SPDX-License-Identifier: Apache-2.0
 * The data structure of an open pack: where the parts of the original files are in it. open.c fills
 * it, fetch.c and restore.c read it.
 *
 * Addresses of parts are those that the reader reserves. They can be dereferenced only if the whole
 * pack is in memory, so parts are read through laci_packfile_read_bytes. */
#ifndef LACI_PACK_OPEN_IN_H
#define LACI_PACK_OPEN_IN_H

#include "base/memory.h"
#include "pack/packfile.h"

typedef struct laci_packfile_entry {
  const char *name;
  uint64_t size_bytes, hash;
  size_t first_part, n_parts; /* range of the file's parts in laci_packfile.parts */
  size_t first_rest;          /* index in laci_packfile.rests of the file's first part of plain
                                 bytes */
  size_t first_tensor;        /* index in laci_packfile.tensors of the file's first packed weight */
} laci_packfile_entry;

typedef struct laci_packfile_rest {
  const uint8_t *bytes; /* address that the reader reserves for the first byte of the range
                           (base/reader.h) */
  size_t size_bytes;
} laci_packfile_rest;

struct laci_packfile {
  laci_reader *reader;
  laci_arena tables; /* memory of the names and records, which are read once */
  size_t n_files, n_parts, n_rests, n_tensors;
  laci_packfile_entry *files;
  const uint8_t *parts; /* [n_parts] kind of each part: PACK_PART_REST or PACK_PART_TENSOR */
  laci_packfile_rest *rests;
  laci_packfile_tensor *tensors;
};

/** Copies n bytes of the pack to `to`. bytes: an address in the memory that the pack's reader has
 * reserved. */
LAC_MUST_CHECK lac_status laci_packfile_read_bytes(const laci_packfile *pack, const void *bytes,
                                                   size_t n, void *to, lac_error *err);
/** Unpacks the outer indices [first, first + n) of a weight to `dense`. */
LAC_MUST_CHECK lac_status laci_packfile_unpack_weight(const laci_packfile *pack,
                                                      const laci_packfile_tensor *tensor,
                                                      int64_t first, int64_t n, uint8_t *dense,
                                                      lac_error *err);

#endif
