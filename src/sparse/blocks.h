/* SPDX-License-Identifier: Apache-2.0
 * Cuts a weight into blocks of several output channels by several input channels, separately at
 * every kernel position.
 *
 *     element (row, column, p) of a block is at  first + row * row_step + column * inner + p
 *
 * with p = 0 .. n_positions - 1: one laci_block stands for n_positions blocks at kernel positions
 * that are neighbours in memory. Rows are output channels of one convolution group, columns its
 * input channels; the last block of either may be smaller. Blocks are numbered; every element of
 * the weight is in exactly one. Next: rule.c. */
#ifndef LACI_SPARSE_BLOCKS_H
#define LACI_SPARSE_BLOCKS_H

#include "lacuna/status.h"
#include "sparse/weight_view.h"

typedef struct laci_blocks_size {
  int rows, columns;
} laci_blocks_size;

/** How a weight is cut into blocks, none of which crosses a convolution group's bounds. */
typedef struct laci_blocks {
  const laci_weight_view *weight;
  laci_blocks_size size;
  bool rows_outside; /* the axis of output channels comes before that of input channels */
  int64_t n_slices;  /* product of all axes' sizes other than rows, columns and positions */
  int64_t between;   /* product of the axes' sizes between rows and columns, or after both */
  int64_t row_blocks, n_row_blocks, column_blocks, n_column_blocks; /* blocks in a run, and in all
                                                                       runs, along rows and along
                                                                       columns */
  int64_t positions, chunk, n_chunks; /* positions: number of kernel positions that are neighbours
                                         in memory; chunk: the most of them in one laci_block */
  int64_t n;
} laci_blocks;

/** n_positions blocks of n_rows by n_columns, at neighbouring kernel positions. */
typedef struct laci_block {
  int64_t first;
  int n_rows, n_columns;
  int64_t n_positions;
} laci_block;

/** Cuts a weight that laci_weight_check accepts. Fails LAC_BAD_SHAPE, naming the weight, if the
 * view's rows contradict its shape. */
LAC_MUST_CHECK lac_status laci_blocks_init(laci_blocks *blocks, const laci_weight_view *weight,
                                           laci_blocks_size size, lac_error *err);

/** Returns the most elements of a laci_block: the length that `raw` and `out` of
 * laci_block_read_scores need. */
int64_t laci_blocks_largest_block(const laci_blocks *blocks);

laci_block laci_block_at(const laci_blocks *blocks, int64_t index);

static inline int64_t laci_block_element(const laci_blocks *blocks, const laci_block *block,
                                         int row, int column) {
  return block->first + row * blocks->weight->row_step + column * blocks->weight->inner;
}

/** A function that reads n elements of a weight, from element `first` on: laci_scores_read or
 * laci_zero_distances_read. */
typedef void laci_elements_read(const laci_weight_view *weight, int64_t first, int64_t n,
                                double *out);

/** Reads a block into out[(p * n_rows + row) * n_columns + column]; raw is scratch memory of the
 * same length. */
void laci_block_read_scores(const laci_blocks *blocks, const laci_block *block,
                            laci_elements_read *read, double *raw, double *out);

#endif
