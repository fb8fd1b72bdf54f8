/* SPDX-License-Identifier: Apache-2.0
 * Cuts a weight into blocks of several output channels (rows) by several input channels (columns),
 * separately at every kernel position.
 *
 *     element (row, column, p) of a block is at  first + row * row_step + column * inner + p
 *
 * with p = 0 .. n_positions - 1. So one laci_block is n_positions blocks, at kernel positions that
 * are neighbours in memory. Rows are output channels of one convolution group, columns its input
 * channels. The last block along either axis may be smaller. Blocks are numbered; every element of
 * the weight is in exactly one. Next: rule.c. */
#ifndef LACI_SPARSE_BLOCKS_H
#define LACI_SPARSE_BLOCKS_H

#include "lacuna/status.h"
#include "sparse/weight_view.h"

typedef struct laci_blocks_size {
  int rows, columns;
} laci_blocks_size;

/** How a weight is cut into blocks. No block crosses the bounds of a convolution group. */
typedef struct laci_blocks {
  const laci_weight_view *weight;
  laci_blocks_size size;
  bool rows_outside; /* true: the axis of output channels comes before that of input channels */
  int64_t n_slices;  /* product of the sizes of all axes but rows, columns and positions */
  int64_t between;   /* product of the sizes of the axes between rows and columns, or after both */
  /* along rows (row_) and columns (column_): number of blocks in one run, and in all runs
     together */
  int64_t row_blocks, n_row_blocks, column_blocks, n_column_blocks;
  /* positions: number of kernel positions that are neighbours in memory. chunk: maximum number of
     these in one laci_block. n_chunks: number of laci_blocks for all of them */
  int64_t positions, chunk, n_chunks;
  int64_t n;
} laci_blocks;

/** A group of n_positions blocks of n_rows by n_columns, at neighbouring kernel positions. */
typedef struct laci_block {
  int64_t first;
  int n_rows, n_columns;
  int64_t n_positions;
} laci_block;

/** Cuts a weight, which must pass laci_weight_check, into blocks. Fails with LAC_BAD_SHAPE, whose
 * text names the weight, if the view's rows contradict its shape. */
LAC_MUST_CHECK lac_status laci_blocks_init(laci_blocks *blocks, const laci_weight_view *weight,
                                           laci_blocks_size size, lac_error *err);

/** laci_blocks_largest_block: returns the maximum number of elements in a laci_block, which is the
 * length of `raw` and `out` of laci_block_read_scores. laci_block_at: returns block number
 * `index`. */
int64_t laci_blocks_largest_block(const laci_blocks *blocks);

laci_block laci_block_at(const laci_blocks *blocks, int64_t index);

static inline int64_t laci_block_element(const laci_blocks *blocks, const laci_block *block,
                                         int row, int column) {
  return block->first + row * blocks->weight->row_step + column * blocks->weight->inner;
}

/** A function that reads n elements of a weight, beginning with element `first`, to `out`:
 * laci_scores_read or laci_zero_distances_read. */
typedef void laci_elements_read(const laci_weight_view *weight, int64_t first, int64_t n,
                                double *out);

/** Reads the elements of a block by the function `read` into out[(p * n_rows + row) * n_columns +
 * column]. raw: scratch memory of the same length. */
void laci_block_read_scores(const laci_blocks *blocks, const laci_block *block,
                            laci_elements_read *read, double *raw, double *out);

#endif
