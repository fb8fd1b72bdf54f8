/* SPDX-License-Identifier: Apache-2.0
 * A sparse product of floats (product.h) without generated code, for many rows that keep four of
 * every eight columns, as 2:4 does. Rows that keep the same four are a row group, and computed
 * together.
 *
 * Columns are cut into windows of eight. With 2:4, a window has 36 patterns, so that 256 rows have
 * about seven of each. What a strip, three units of lanes, reads of a group's four columns is
 * loaded once, stays in twelve registers and is multiplied by each row's four weights. Sums of all
 * rows of a chunk stay in the first cache: 24 KB. So a multiply-add takes 0.6 loads on AVX2, where
 * CSR (csr.h) takes 1.2. Groups of one size are stored one after the other, and their code is
 * straight: no branch depends on the pattern.
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
  LACI_GROUPED_ROWS_WINDOW = 8,    /* columns */
  LACI_GROUPED_ROWS_KEPT = 4,      /* of them */
  LACI_GROUPED_ROWS_MOST = 8,      /* rows of a group */
  LACI_GROUPED_ROWS_UNITS = 3,     /* of a strip */
  LACI_GROUPED_ROWS_FLOATS = 6144, /* of a chunk's sums */
};

/** n[size - 1]: how many groups have that size; n_singles follow them. */
typedef struct laci_grouped_rows_window {
  int32_t n[LACI_GROUPED_ROWS_MOST], n_singles;
} laci_grouped_rows_window;

/** Where a group's columns are: floats from where a tile begins. */
typedef struct laci_grouped_rows_columns {
  int32_t at[LACI_GROUPED_ROWS_KEPT];
} laci_grouped_rows_columns;

/** One kept weight; `sums`: as of a group's rows. */
typedef struct laci_grouped_rows_single {
  int32_t at, sums;
  float weight;
} laci_grouped_rows_single;

/** Rows with the same columns. For each window: the columns of its row groups, the largest group
 * first; for each row of a group the offset of its sums, in floats, and its four weights. */
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
  int lanes; /* of a unit, by the level in force at laci_grouped_rows_init */
  laci_grouped_rows_window *windows;
  laci_grouped_rows_columns *columns;
  uint16_t *sums;
  float *weights;
  laci_grouped_rows_single *singles;
  size_t bytes; /* that all of it takes */
} laci_grouped_rows;

/** Are grouped rows faster than CSR (csr.h) by the level in force? They are where rows are many,
 * and most keep four of a window. */
bool laci_grouped_rows_gain(const laci_sparse_product *p);
/** The same before it is known what is kept, from the share of weights that are. */
bool laci_grouped_rows_may_gain(int64_t rows_together, double kept);

/** The grouped rows of a product with these weights, [n_kept], in chunks of so many rows at most,
 * as even as can be. Fails LAC_NO_MEMORY, LAC_UNSUPPORTED: a distance of more than 2^31 floats,
 * columns that may be missing; b is then empty. */
LAC_MUST_CHECK lac_status laci_grouped_rows_init(const laci_sparse_product *p, const float *weight,
                                                 int64_t chunk_rows, laci_grouped_rows *b,
                                                 lac_error *err);
void laci_grouped_rows_clear(laci_grouped_rows *b);

/** How many units of lanes have results, of all tiles, by the level in force, and into how many
 * strips they fall (laci_sparse_strip_begin). */
int64_t laci_grouped_rows_units(const laci_sparse_tile *tiles, int64_t n_tiles);
int64_t laci_grouped_rows_strips(int64_t n_units);

/** All rows of a chunk for units [first, last), a strip at most. o->weight is not read. Strips and
 * chunks are independent of each other. The level is that of laci_grouped_rows_init. */
typedef void laci_grouped_rows_run(const laci_grouped_rows *b, const laci_sparse_operands *o,
                                   int64_t chunk, const laci_sparse_tile *tiles, int64_t first,
                                   int64_t last);

#define LACI_GROUPED_ROWS_DECLARE(name, level) laci_grouped_rows_run laci_grouped_rows_##name;
LACI_KERNEL_VARIANTS(LACI_GROUPED_ROWS_DECLARE)
#undef LACI_GROUPED_ROWS_DECLARE

/** The variant by the level in force (cpu/cpu.h). */
laci_grouped_rows_run *laci_grouped_rows_now(void);

#endif
