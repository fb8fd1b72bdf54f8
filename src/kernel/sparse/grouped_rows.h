/* SPDX-License-Identifier: Apache-2.0
 * A sparse product of floats (product.h) without generated code, for many rows that keep four of
 * every eight columns, as 2:4 does. Rows that keep the same four are a row group, and are computed
 * together.
 *
 * Columns are cut into windows of eight. With 2:4, a window has 36 patterns, so that 256 rows have
 * about seven of each. A strip is three units (vectors) of lanes. Its values of a group's four
 * columns are loaded once into twelve registers, and are multiplied by each row's four weights. A
 * chunk is some rows, whose sums stay in the first-level cache: 24 KB. So a multiply-add takes 0.6
 * loads on AVX2, where CSR (csr.h) takes 1.2. Groups of the same size are stored together, and
 * their code is straight: no branch depends on the pattern.
 *
 * Weights of a chunk are read once for each strip, in their order, about 5.4 bytes each. Where a
 * row does not keep four weights of a window, they are stored as singles. Columns ascend in a row
 * and so do windows: results are the bits of product.h's definition. */
#ifndef LACI_KERNEL_SPARSE_GROUPED_ROWS_H
#define LACI_KERNEL_SPARSE_GROUPED_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "kernel/sparse/product.h"
#include "lacuna/status.h"
#include "kernel/variants.h"

enum {
  LACI_GROUPED_ROWS_WINDOW = 8,    /* columns of a window */
  LACI_GROUPED_ROWS_KEPT = 4,      /* columns of a window that a grouped row keeps */
  LACI_GROUPED_ROWS_MOST = 8,      /* most rows of a group */
  LACI_GROUPED_ROWS_UNITS = 3,     /* units (vectors of lanes) of a strip */
  LACI_GROUPED_ROWS_FLOATS = 6144, /* most floats of a chunk's sums */
};

/** The weights of one window in a chunk. n[size - 1]: number of row groups that have `size` rows.
 * n_singles: number of single weights, which follow the groups. */
typedef struct laci_grouped_rows_window {
  int32_t n[LACI_GROUPED_ROWS_MOST], n_singles;
} laci_grouped_rows_window;

/** The columns of a row group: at[i] is the offset of column i in floats from the beginning of a
 * tile. */
typedef struct laci_grouped_rows_columns {
  int32_t at[LACI_GROUPED_ROWS_KEPT];
} laci_grouped_rows_columns;

/** One kept weight that is not in a group. at: floats from the beginning of a tile to its column;
 * sums: offset of its row's sums, in floats. */
typedef struct laci_grouped_rows_single {
  int32_t at, sums;
  float weight;
} laci_grouped_rows_single;

/** Some rows, which all have the same columns to choose from. For each window it stores the columns
 * of the row groups, the largest group first; and for each row of a group, the offset of its sums,
 * in floats, and its four weights. */
typedef struct laci_grouped_rows_chunk {
  int64_t row_first, row_last;
  const laci_grouped_rows_columns *columns;
  const uint16_t *sums;
  const float *weights;
  const laci_grouped_rows_single *singles;
  const laci_grouped_rows_window *windows; /* [n_windows] */
} laci_grouped_rows_chunk;

typedef struct laci_grouped_rows {
  laci_grouped_rows_chunk *chunks; /* [n_chunks] */
  int64_t n_chunks, n_windows, row_stride;
  int lanes; /* lanes of a unit; they depend on the SIMD level in force when the struct was made */
  laci_grouped_rows_window *windows;
  laci_grouped_rows_columns *columns;
  uint16_t *sums;
  float *weights;
  laci_grouped_rows_single *singles;
  size_t bytes; /* bytes of all arrays together */
} laci_grouped_rows;

/** Are grouped rows faster than CSR (csr.h) for this product, at the SIMD level in force? They are
 * if there are many rows, and most of them keep four columns of each window. */
bool laci_grouped_rows_are_faster(const laci_sparse_product *p);
/** Estimates laci_grouped_rows_are_faster before the mask is known. rows_together: that of
 * laci_sparse_product. kept: share of the weights that are kept. */
bool laci_grouped_rows_may_be_faster(int64_t rows_together, double kept);

/** Builds the grouped rows of a product with these weights, [n_kept]. A chunk has at most
 * chunk_rows rows; chunks are as even as possible. Fails LAC_NO_MEMORY, or LAC_UNSUPPORTED for a
 * distance of more than 2^31 floats or a product with `neighbour`; b is then empty. */
LAC_MUST_CHECK lac_status laci_grouped_rows_init(const laci_sparse_product *p, const float *weight,
                                                 int64_t chunk_rows, laci_grouped_rows *b,
                                                 lac_error *err);
void laci_grouped_rows_clear(laci_grouped_rows *b);

/** laci_grouped_rows_n_units: returns the number of units that have results, in all tiles, at the
 * SIMD level in force. laci_grouped_rows_n_strips: returns the number of strips into which
 * n_units units are divided (laci_sparse_strip_begin). */
int64_t laci_grouped_rows_n_units(const laci_sparse_tile *tiles, int64_t n_tiles);
int64_t laci_grouped_rows_n_strips(int64_t n_units);

/** Computes all rows of a chunk for units [first, last), at most those of a strip. o->weight is not
 * read. Strips and chunks are independent of each other. The SIMD level must be that of
 * laci_grouped_rows_init. */
typedef void laci_grouped_rows_run(const laci_grouped_rows *b, const laci_sparse_operands *o,
                                   int64_t chunk, const laci_sparse_tile *tiles, int64_t first,
                                   int64_t last);

#define LACI_GROUPED_ROWS_DECLARE(name, level) laci_grouped_rows_run laci_grouped_rows_##name;
LACI_KERNEL_VARIANTS(LACI_GROUPED_ROWS_DECLARE)
#undef LACI_GROUPED_ROWS_DECLARE

/** Returns the variant for the SIMD level in force (cpu/cpu.h). */
laci_grouped_rows_run *laci_grouped_rows_variant(void);

#endif
