/* SPDX-License-Identifier: Apache-2.0
 * A sparse product of floats (product.h) without generated code: compressed sparse rows in blocks
 * of columns.
 *
 * A strip is a few tiles: what they read of a block's columns fits in half of the first-level
 * cache, where it is read many times. A row is a list of entries: a kept weight and the offset of
 * its column. The sums of a strip stay in registers while a row is read. A chunk is some rows,
 * whose sums are kept in memory between blocks. The entries of a chunk are stored block after
 * block, so that weights are read once for each strip, in their order, 8 bytes each.
 *
 * Columns ascend in a row and so do blocks: results are the bits of product.h's definition. */
#ifndef LACI_KERNEL_SPARSE_CSR_H
#define LACI_KERNEL_SPARSE_CSR_H

#include <stddef.h>

#include "kernel/sparse/product.h"
#include "lacuna/status.h"
#include "kernel/variants.h"

enum {
  LACI_CSR_MOST_ROWS = 128, /* maximum number of rows in a chunk */
  LACI_CSR_MOST_TILES = 8,  /* maximum number of tiles in a strip */
};

typedef struct laci_csr_entry {
  int32_t at; /* offset of the column that the weight is multiplied with: floats from the beginning
                 of a tile */
  float weight;
} laci_csr_entry;

/** Some rows of the same group, so of the same columns. In block b, row r of the chunk has entries
 * [begin[b * n + r], begin[b * n + r + 1]), where n is the number of its rows. */
typedef struct laci_csr_chunk {
  int64_t row_first, row_last, n_blocks;
  const int64_t *begin; /* [n_blocks * n + 1] where the entries of each row begin in each block */
} laci_csr_chunk;

typedef struct laci_csr {
  laci_csr_chunk *chunks; /* [n_chunks] the chunks of all rows */
  int64_t n_chunks, row_stride;
  laci_csr_entry *entries;
  int64_t *begin; /* memory of the arrays `begin` of all chunks */
  size_t bytes;   /* bytes of all arrays together */
} laci_csr;

/** Returns the maximum number of tiles in a strip, at the SIMD level in force. */
int64_t laci_csr_tiles_per_strip(void);
/** Returns the number of strips into which n_tiles tiles are divided (laci_sparse_strip_begin). */
int64_t laci_csr_n_strips(int64_t n_tiles);

/** The tiles that the CSR form is built for, and the largest number of rows of a chunk. */
typedef struct laci_csr_cut {
  const laci_sparse_tile *tiles;
  int64_t n_tiles, chunk_rows;
} laci_csr_cut;

/** Builds the CSR form of a product with these weights, [n_kept]. Fails LAC_NO_MEMORY, or
 * LAC_UNSUPPORTED for a distance of more than 2^31 floats or a product with `neighbour`; csr is
 * then empty. */
LAC_MUST_CHECK lac_status laci_csr_init(const laci_sparse_product *p, const float *weight,
                                        const laci_csr_cut *cut, laci_csr *csr, lac_error *err);
void laci_csr_clear(laci_csr *csr);

/** Computes all rows of a chunk for n_tiles tiles, at most those of a strip. o->weight is not read.
 * Strips and chunks are independent of each other. */
typedef void laci_csr_run(const laci_csr *csr, const laci_sparse_operands *o, int64_t chunk,
                          const laci_sparse_tile *tiles, int64_t n_tiles);

#define LACI_CSR_DECLARE(name, level) laci_csr_run laci_csr_##name;
LACI_KERNEL_VARIANTS(LACI_CSR_DECLARE)
#undef LACI_CSR_DECLARE

/** Returns the variant for the SIMD level in force (cpu/cpu.h). */
laci_csr_run *laci_csr_variant(void);

#endif
