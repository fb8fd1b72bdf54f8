/* SPDX-License-Identifier: Apache-2.0
 * How the scalar kernels of bf16 and int8 traverse a part of a product: in strips of a few tiles,
 * and within a strip by groups of rows whose results share four bytes. */
#ifndef LACI_KERNEL_SPARSE_PRODUCT_STRIPS_IN_H
#define LACI_KERNEL_SPARSE_PRODUCT_STRIPS_IN_H

#include "kernel/sparse/product.h"

enum { LACI_SPARSE_STRIP = 8 }; /* maximum number of tiles in a strip */

/* A strip of tiles: for each tile, the address of its lane 0 in x. */
typedef struct laci_sparse_strip {
  const float *x[LACI_SPARSE_STRIP];
  int n_tiles;
} laci_sparse_strip;

/* A function that computes the rows of `part`, whose results share four bytes, for the tiles of a
 * strip. */
typedef void laci_sparse_strip_rows(const laci_sparse_product *p, const laci_sparse_operands *o,
                                    const laci_sparse_part *part, const laci_sparse_strip *s);

static inline void laci_sparse_for_each_strip(const laci_sparse_product *p,
                                              const laci_sparse_operands *o,
                                              const laci_sparse_part *part, int64_t together,
                                              laci_sparse_strip_rows *rows) {
  laci_sparse_part some = *part;
  for (; some.tile_first < part->tile_last; some.tile_first = some.tile_last) {
    const int64_t left = part->tile_last - some.tile_first;
    laci_sparse_strip s = {.n_tiles = left < LACI_SPARSE_STRIP ? (int)left : LACI_SPARSE_STRIP};
    some.tile_last = some.tile_first + s.n_tiles;
    for (int t = 0; t < s.n_tiles; t++) s.x[t] = o->x + part->tiles[some.tile_first + t].in;
    for (int64_t row = part->row_first; row < part->row_last; row += together) {
      some.row_first = row;
      some.row_last = row + together < part->row_last ? row + together : part->row_last;
      rows(p, o, &some, &s);
    }
  }
}

#endif
