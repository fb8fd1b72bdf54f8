/* SPDX-License-Identifier: Apache-2.0
 * A sparse product of floats (product.h) that needs no generated code. It is for many rows that
 * keep four of every eight columns, as 2:4 does. Rows that keep the same four columns are a row
 * group, and are computed together.
 *
 * Columns are cut into windows of eight. With 2:4, a window has 36 patterns, so that 256 rows have
 * about seven rows of each pattern. A unit is a vector of lanes, and a strip is three units. For
 * each row group, a strip's values of four columns are loaded once, into twelve registers. They are
 * multiplied by the four weights of each row. A chunk is a range of rows whose sums, 24 KB, stay in
 * the first-level cache. So a multiply-add takes 0.6 loads on AVX2, where CSR (csr.h) takes 1.2.
 * Groups of the same size are stored together, and their code has no branch that depends on the
 * pattern.
 *
 * Each strip reads the weights of a chunk once, in the order in which they are stored: about 5.4
 * bytes each. If a row does not keep four weights of a window, these are stored one by one, as
 * singles. Windows, and the columns of a row, are in ascending order: results are the bits of
 * product.h's definition. */
#ifndef LACI_KERNEL_SPARSE_GROUPED_ROWS_H
#define LACI_KERNEL_SPARSE_GROUPED_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "kernel/sparse/product.h"
#include "lacuna/status.h"
#include "kernel/variants.h"

enum {
  LACI_GROUPED_ROWS_WINDOW = 8,    /* number of columns in a window */
  LACI_GROUPED_ROWS_KEPT = 4,      /* number of columns of a window that a row of a group keeps */
  LACI_GROUPED_ROWS_MAX_ROWS = 8,  /* maximum number of rows in a row group */
  LACI_GROUPED_ROWS_UNITS = 3,     /* number of units (vectors of lanes) in a strip */
  LACI_GROUPED_ROWS_FLOATS = 6144, /* maximum number of floats for the sums of a chunk (a range of
                                      rows) */
};

/** The counts of one window of eight columns in a chunk (range of rows). n[size - 1]: number of row
 * groups with `size` rows. n_singles: number of single weights, which are stored after the
 * groups. */
typedef struct laci_grouped_rows_window {
  int32_t n[LACI_GROUPED_ROWS_MAX_ROWS], n_singles;
} laci_grouped_rows_window;

/** The four columns of a row group. at[i]: offset of column i from a tile's beginning in x, in
 * floats. */
typedef struct laci_grouped_rows_columns {
  int32_t at[LACI_GROUPED_ROWS_KEPT];
} laci_grouped_rows_columns;

/** A kept weight that is in no row group. at: offset of its column from a tile's beginning in x, in
 * floats. sums: offset of its row's sums, in floats. */
typedef struct laci_grouped_rows_single {
  int32_t at, sums;
  float weight;
} laci_grouped_rows_single;

/** A range of rows that can read the same columns. For each window, `columns` has the columns of
 * each row group, the largest group first. `sums` has the offset of each row's sums, in floats, and
 * `weight` has four weights of each row. */
typedef struct laci_grouped_rows_chunk {
  int64_t row_first, row_last;
  const laci_grouped_rows_columns *columns;
  const uint16_t *sums;
  const float *weights;
  const laci_grouped_rows_single *singles;
  const laci_grouped_rows_window *windows; /* [n_windows] number of row groups and singles in each
                                              window */
} laci_grouped_rows_chunk;

typedef struct laci_grouped_rows {
  laci_grouped_rows_chunk *chunks; /* [n_chunks] the ranges of rows */
  int64_t n_chunks, n_windows, row_stride;
  int lanes; /* number of lanes in a unit (vector of lanes), for the SIMD level that was in force at
                laci_grouped_rows_init */
  laci_grouped_rows_window *windows;
  laci_grouped_rows_columns *columns;
  uint16_t *sums;
  float *weights;
  laci_grouped_rows_single *singles;
  size_t bytes; /* size of all arrays together, in bytes */
} laci_grouped_rows;

/** Are grouped rows faster than CSR (csr.h) for this product, at the SIMD level in force? They are
 * if there are many rows, and most of them keep four columns of each window. */
bool laci_grouped_rows_are_faster(const laci_sparse_product *p);
/** Estimates laci_grouped_rows_are_faster before the mask is known. rows_together: as in
 * laci_sparse_product. kept: share of the weights that are kept, 0 to 1. */
bool laci_grouped_rows_may_be_faster(int64_t rows_together, double kept);

/** Packs the weights [n_kept] of a product as grouped rows. Chunks have at most chunk_rows rows,
 * and are as equal as possible. Fails with LAC_NO_MEMORY; or with LAC_UNSUPPORTED if p has
 * p->neighbour, or columns more than 2^31 floats apart. *b is then empty. */
LAC_MUST_CHECK lac_status laci_grouped_rows_init(const laci_sparse_product *p, const float *weight,
                                                 int64_t chunk_rows, laci_grouped_rows *b,
                                                 lac_error *err);
void laci_grouped_rows_clear(laci_grouped_rows *b);

/** laci_grouped_rows_n_vectors: returns the number of units in all tiles that have results, at the
 * SIMD level in force. laci_grouped_rows_n_strips: returns the number of strips into which n_units
 * units are divided (laci_sparse_strip_begin). */
int64_t laci_grouped_rows_n_vectors(const laci_sparse_tile *tiles, int64_t n_tiles);
int64_t laci_grouped_rows_n_strips(int64_t n_units);

/** Computes all rows of a chunk for the units [first, last), which are at most those of one strip.
 * o->weight is not read. Strips and chunks may be computed at the same time. The SIMD level must be
 * the same as at laci_grouped_rows_init. */
typedef void laci_grouped_rows_run(const laci_grouped_rows *b, const laci_sparse_operands *o,
                                   int64_t chunk, const laci_sparse_tile *tiles, int64_t first,
                                   int64_t last);

#define LACI_GROUPED_ROWS_DECLARE(name, level) laci_grouped_rows_run laci_grouped_rows_##name;
LACI_KERNEL_VARIANTS(LACI_GROUPED_ROWS_DECLARE)
#undef LACI_GROUPED_ROWS_DECLARE

/** Returns the variant for the SIMD level in force (cpu/cpu.h). */
laci_grouped_rows_run *laci_grouped_rows_variant(void);

#endif
