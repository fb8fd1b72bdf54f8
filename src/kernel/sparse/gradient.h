/* SPDX-License-Identifier: Apache-2.0
 * The gradient of a sparse product's weights (product.h), of those alone that are kept:
 *
 *     gradient[k] = sum over tiles and lanes of dy[tile.out + row * row_stride + lane]
 *                                             * x[tile.in + column_at[column[k]] + lane]
 *
 * for every k of every row, in the order of the product's weights. Product, tiles and layouts are
 * those of the forward product: x is what it read, dy the gradient of what it wrote, laid out as
 * that. Lanes of a tile that are no results are zeros of dy, which x is multiplied by.
 *
 * Rows of a part that keep the same columns of a window of eight are summed together: six rows of
 * four columns are 24 sums, and a tile costs ten loads for 24 multiply-adds. Which rows these are
 * is found once for a mask; any mask will do, 2:4 is what it is tuned for.
 *
 * Order of summation: tiles fall into blocks of equal length (the last may be shorter). Of a block
 * each of the 16 lanes has a sum of its own that begins at zero and goes through the tiles as they
 * follow each other, one fused multiply-add each; then lanes i and i + 8 are added, of what that
 * makes i and i + 4, i + 2, i + 1. The first block's sum is the gradient; those of others are added
 * to it one after the other. So every variant, and every cut of the items, gives the same bits.
 *
 * With bf16 (product.h), x and dy are bf16, gradients f32, and a block's tiles are taken two at a
 * time, the later one multiplied first, as bf16_pairs.h says; an odd number of them is followed by
 * zeros.
 *
 * gradient_scalar.c is the definition; gradient_isa.c the one text of other variants. */
#ifndef LACI_KERNEL_SPARSE_GRADIENT_H
#define LACI_KERNEL_SPARSE_GRADIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "kernel/sparse/product.h"
#include "lacuna/status.h"
#include "kernel/variants.h"

enum {
  LACI_SPARSE_WINDOW = 8,  /* columns whose patterns are looked at together */
  LACI_SPARSE_TOGETHER = 4 /* of these that a run of rows has */
};

/** Rows that keep the same columns; each has as many consecutive k. */
typedef struct laci_sparse_run {
  uint8_t column[LACI_SPARSE_TOGETHER]; /* relative to the window's first, ascending */
  uint8_t n_columns, n_rows;
} laci_sparse_run;

typedef struct laci_sparse_run_row {
  int32_t row, k; /* relative to the item's first row; where the first gradient goes */
} laci_sparse_run_row;

/** A window of columns of some rows. Runs and their rows are stored one after the other; those of
 * an item end where the next one's begin. */
typedef struct laci_sparse_gradient_item {
  int64_t row_first, n_rows, column_first, n_columns;
  int64_t run_first, run_row_first;
} laci_sparse_gradient_item;

/** Owns its arrays, but for tiles; the product is not needed any more. */
typedef struct laci_sparse_gradient {
  const laci_sparse_tile *tiles; /* [n_tiles], borrowed */
  int64_t n_tiles, block;        /* tiles that are summed in one go */
  int64_t row_stride, n_kept;
  bool bf16;
  int64_t *column_at;
  laci_sparse_gradient_item *items; /* [n_items + 1] */
  int64_t n_items, most_rows;       /* of an item */
  laci_sparse_run *runs;
  laci_sparse_run_row *rows;
} laci_sparse_gradient;

/** Fails LAC_NO_MEMORY, LAC_UNSUPPORTED for 2^31 kept weights, or where columns may be missing; g
 * is then empty. */
LAC_MUST_CHECK lac_status laci_sparse_gradient_init(const laci_sparse_product *p,
                                                    const laci_sparse_tile *tiles, int64_t n_tiles,
                                                    laci_sparse_gradient *g, lac_error *err);
void laci_sparse_gradient_clear(laci_sparse_gradient *g);
/** Floats of scratch memory that each thread needs. */
size_t laci_sparse_gradient_scratch(const laci_sparse_gradient *g);

/** Apart, any alignment of floats. */
typedef struct laci_sparse_slopes {
  const float *x, *dy;
  float *gradient; /* [n_kept] */
  float *scratch;  /* laci_sparse_gradient_scratch floats, of this thread alone */
} laci_sparse_slopes;

/** Computes items [first, last) of g->n_items. Items are independent of each other: each overwrites
 * its own gradients, and together they write all. It is faster if a thread gets neighbouring
 * items. */
typedef void laci_sparse_gradient_run(const laci_sparse_gradient *g, const laci_sparse_slopes *s,
                                      int64_t first, int64_t last);

#define LACI_SPARSE_GRADIENT_DECLARE(name, level) \
  laci_sparse_gradient_run laci_sparse_gradient_##name;
LACI_KERNEL_VARIANTS(LACI_SPARSE_GRADIENT_DECLARE)
#undef LACI_SPARSE_GRADIENT_DECLARE

#if defined(__x86_64__)
laci_sparse_gradient_run laci_sparse_gradient_avx512bf16;
#endif

/** The variant by the level in force (cpu/cpu.h). For bf16 it is the definition where the processor
 * does not multiply bf16 pairs: dense gradients are the better choice there. */
laci_sparse_gradient_run *laci_sparse_gradient_now(void);
laci_sparse_gradient_run *laci_sparse_gradient_bf16_now(void);

#endif
