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
 * once for a mask. Any mask is possible; 2:4 is what the code is tuned for.
 *
 * Order of summation: tiles fall into blocks of equal length (the last may be shorter). In a block,
 * each of the 16 lanes has its own sum, which begins at zero and adds the tiles in order, one fused
 * multiply-add each. Then lanes i and i + 8 are added, and of the results i and i + 4, then i + 2,
 * then i + 1. The gradient is the sum of the blocks, added in order. So every variant, and every
 * division into items, gives the same bits.
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
  LACI_SPARSE_WINDOW = 8,  /* columns whose patterns are compared together */
  LACI_SPARSE_TOGETHER = 4 /* most columns of the window that a run keeps */
};

/** Rows that keep the same columns of a window. The weights that a row keeps there are n_columns
 * consecutive ones (k). */
typedef struct laci_sparse_run {
  uint8_t column[LACI_SPARSE_TOGETHER]; /* [n_columns] the columns, counted from the first column of
                                           the window, ascending */
  uint8_t n_columns, n_rows;
} laci_sparse_run;

typedef struct laci_sparse_run_row {
  int32_t row, k; /* the row, counted from the first row of the item; the index of the first of its
                     n_columns kept weights */
} laci_sparse_run_row;

/** A work item: some rows and a window of columns. The runs of all items are in one array, and the
 * rows of all runs in another: run_first and run_row_first are the indices at which those of this
 * item begin. They end where those of the next item begin. */
typedef struct laci_sparse_gradient_item {
  int64_t row_first, n_rows, column_first, n_columns;
  int64_t run_first, run_row_first;
} laci_sparse_gradient_item;

/** The prepared gradient. It owns its arrays except for tiles, and does not need the product any
 * more. */
typedef struct laci_sparse_gradient {
  const laci_sparse_tile *tiles; /* [n_tiles], borrowed */
  int64_t n_tiles, block;        /* number of tiles; number of tiles of a block (see the order of
                                    summation) */
  int64_t row_stride, n_kept;
  bool bf16;
  int64_t *column_at;
  laci_sparse_gradient_item *items; /* [n_items + 1] */
  int64_t n_items, most_rows;       /* number of items; most rows of an item */
  laci_sparse_run *runs;
  laci_sparse_run_row *rows;
} laci_sparse_gradient;

/** Prepares the gradient of p. Fails LAC_NO_MEMORY, or LAC_UNSUPPORTED for 2^31 kept weights or a
 * product with `neighbour`; g is then empty. */
LAC_MUST_CHECK lac_status laci_sparse_gradient_init(const laci_sparse_product *p,
                                                    const laci_sparse_tile *tiles, int64_t n_tiles,
                                                    laci_sparse_gradient *g, lac_error *err);
void laci_sparse_gradient_clear(laci_sparse_gradient *g);
/** Returns the floats of scratch memory that each thread needs. */
size_t laci_sparse_gradient_scratch_floats(const laci_sparse_gradient *g);

/** Operands. They do not overlap, and need only the alignment of floats. */
typedef struct laci_sparse_gradient_operands {
  const float *x, *dy;
  float *gradient; /* [n_kept] */
  float *scratch;  /* laci_sparse_gradient_scratch_floats floats, of this thread alone */
} laci_sparse_gradient_operands;

/** Computes items [first, last) of g->n_items. Items are independent of each other: each overwrites
 * its own gradients, and together they write all. It is faster if a thread gets neighbouring
 * items. */
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

/** Return the variant for the SIMD level in force (cpu/cpu.h). For bf16, that is the scalar
 * reference if the processor cannot multiply bf16 pairs; dense gradients are then faster. */
laci_sparse_gradient_run *laci_sparse_gradient_variant(void);
laci_sparse_gradient_run *laci_sparse_gradient_bf16_variant(void);

#endif
