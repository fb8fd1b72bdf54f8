/* SPDX-License-Identifier: Apache-2.0
 * The gradient of the kept weights of a sparse product (product.h):
 *
 *     gradient[k] = sum over tiles and lanes of dy[tile.out + row * row_stride + lane]
 *                                             * x[tile.in + column_at[column[k]] + lane]
 *
 * for every k of every row, in the order of the product's weights. Product, tiles and layouts are
 * those of the forward product: x is its input, dy is the gradient of its result and has the
 * result's layout. In lanes of a tile that are not results, dy must be zero.
 *
 * Rows of a part that keep the same columns of a window of eight are summed together: six rows of
 * four columns are 24 sums, and a tile costs ten loads for 24 multiply-adds. These rows are found
 * once, when the gradient is prepared. Any mask is possible; 2:4 is what the code is tuned for.
 *
 * Order of summation: tiles fall into blocks of equal length (the last may be shorter). In a block,
 * each of the 16 lanes has its own sum, which begins at zero and adds the tiles in order, one fused
 * multiply-add each. Then lanes i and i + 8 are added, and of the results i and i + 4, then i + 2,
 * then i + 1. The gradient is the sum of the blocks, added in order. So every variant, and every
 * division into work items, gives the same bits.
 *
 * With bf16 (product.h), x and dy are bf16, gradients f32, and a block's tiles are taken two at a
 * time, the later one multiplied first, as bf16_pairs.h says; an odd number of them is followed by
 * zeros.
 *
 * gradient_scalar.c is the definition; gradient_isa.c the common source of the other variants. */
#ifndef LACI_KERNEL_SPARSE_GRADIENT_H
#define LACI_KERNEL_SPARSE_GRADIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "kernel/sparse/product.h"
#include "lacuna/status.h"
#include "kernel/variants.h"

enum {
  LACI_SPARSE_WINDOW = 8, /* a window: the number of columns in which the kept columns of rows are
                             compared */
  LACI_SPARSE_RUN_MAX_COLUMNS = 4 /* maximum number of columns of a window that rows of a run (rows
                                     with the same kept columns) keep */
};

/** A run: rows that keep the same columns of a window. The kept weights of a row there are
 * n_columns consecutive ones. */
typedef struct laci_sparse_run {
  uint8_t column[LACI_SPARSE_RUN_MAX_COLUMNS]; /* [n_columns] the kept columns, ascending, counted
                                                  from the first column of the window */
  uint8_t n_columns, n_rows;
} laci_sparse_run;

typedef struct laci_sparse_run_row {
  int32_t row, k; /* row: counted from the first row of the item. k: index of the row's first kept
                     weight in the window */
} laci_sparse_run_row;

/** A work item: some rows and a window of columns. The runs of all items are in one array, and the
 * rows of all runs in another. This item's runs begin at index run_first, and the rows of its runs
 * at run_row_first; they end where those of the next item begin. */
typedef struct laci_sparse_gradient_item {
  int64_t row_first, n_rows, column_first, n_columns;
  int64_t run_first, run_row_first;
} laci_sparse_gradient_item;

/** The gradient of a product, ready to be computed. It owns its arrays except for tiles, and no
 * longer needs the product. */
typedef struct laci_sparse_gradient {
  const laci_sparse_tile *tiles; /* [n_tiles] tiles of the forward product, borrowed */
  int64_t n_tiles, block;        /* n_tiles: number of tiles. block: number of tiles in a block (see
                                    the order of summation) */
  int64_t row_stride, n_kept;
  bool bf16;
  int64_t *column_at;
  laci_sparse_gradient_item *items; /* [n_items + 1] work items; the last one only marks the end */
  int64_t n_items, most_rows;       /* n_items: number of work items. most_rows: maximum number of
                                       rows in an item */
  laci_sparse_run *runs;
  laci_sparse_run_row *rows;
} laci_sparse_gradient;

/** Prepares the gradient of product p. Fails with LAC_NO_MEMORY; or with LAC_UNSUPPORTED if p is of
 * int8, has 2^31 kept weights or more, or has p->neighbour. *g is then empty. */
LAC_MUST_CHECK lac_status laci_sparse_gradient_init(const laci_sparse_product *p,
                                                    const laci_sparse_tile *tiles, int64_t n_tiles,
                                                    laci_sparse_gradient *g, lac_error *err);
void laci_sparse_gradient_clear(laci_sparse_gradient *g);
/** Returns the number of floats of scratch memory that each thread needs. */
size_t laci_sparse_gradient_scratch_floats(const laci_sparse_gradient *g);

/** The arrays that a gradient is computed from and written to. They do not overlap, and need only
 * the alignment of floats. */
typedef struct laci_sparse_gradient_operands {
  const float *x, *dy;
  float *gradient; /* [n_kept] result: the gradient of each kept weight */
  float *scratch;  /* scratch memory of this thread alone: laci_sparse_gradient_scratch_floats
                      floats */
} laci_sparse_gradient_operands;

/** Computes items [first, last) of g->n_items. Items may be computed at the same time: each
 * overwrites its own gradients, and together they write all gradients. It is faster if a thread
 * gets neighbouring items. */
typedef void laci_sparse_gradient_run(const laci_sparse_gradient *g,
                                      const laci_sparse_gradient_operands *s, int64_t first,
                                      int64_t last);

#define LACI_SPARSE_GRADIENT_DECLARE(name, level) \
  laci_sparse_gradient_run laci_sparse_gradient_##name;
LACI_KERNEL_VARIANTS(LACI_SPARSE_GRADIENT_DECLARE)
#undef LACI_SPARSE_GRADIENT_DECLARE

#if defined(__x86_64__)
laci_sparse_gradient_run laci_sparse_gradient_avx512bf16;
#endif

/** Return the variant for the SIMD level in force (cpu/cpu.h). If the processor cannot multiply
 * bf16 pairs, the variant for bf16 is the scalar reference; dense gradients are then faster. */
laci_sparse_gradient_run *laci_sparse_gradient_variant(void);
laci_sparse_gradient_run *laci_sparse_gradient_bf16_variant(void);

#endif
