/* SPDX-License-Identifier: Apache-2.0
 * An open pack: where everything lies in the mapping. open.c fills it, restore.c reads it. */
#ifndef LACI_PACK_OPEN_IN_H
#define LACI_PACK_OPEN_IN_H

#include "pack/format_in.h"
#include "pack/packfile.h"

typedef struct laci_packfile_entry {
  const char *name;
  uint64_t size_bytes, hash;
  size_t first_piece, n_pieces; /* of pieces */
  size_t first_rest;            /* of rests */
  size_t first_tensor;          /* of tensors */
} laci_packfile_entry;

typedef struct laci_packfile_rest {
  const uint8_t *bytes;
  size_t size_bytes;
} laci_packfile_rest;

struct laci_packfile {
  laci_mapped_file map; /* or, from memory: */
  uint8_t *copy;
  const uint8_t *bytes;
  size_t size_bytes;
  size_t n_files, n_pieces, n_rests, n_tensors;
  laci_packfile_entry *files;
  const uint8_t *pieces; /* [n_pieces] PACK_PIECE_... */
  laci_packfile_rest *rests;
  laci_packfile_tensor *tensors;
};

#endif
