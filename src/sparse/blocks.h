/* SPDX-License-Identifier: Apache-2.0
 * A weight in blocks of several output channels by several input channels, at every kernel position
 * apart.
 *
 *     element (row, column, p) of a block is at  first + row * row_step + column * inner + p
 *
 * with p = 0 .. n_positions - 1: neighbours in memory are positions that share their blocks. Rows
 * are output channels of one convolution group, columns its input channels; the last block of
 * either may be smaller. Blocks are numbered, share no element, and hold all of them. Next: rule.c.
 */
#ifndef LACI_SPARSE_BLOCKS_H
#define LACI_SPARSE_BLOCKS_H

#include "lacuna/status.h"
#include "sparse/weight_view.h"

typedef struct laci_blocks_size {
  int rows, columns;
} laci_blocks_size;

typedef struct laci_blocks {
  const laci_weight_view *weight;
  laci_blocks_size size;
  bool rows_outside; /* the axis of output channels comes before that of input channels */
  int64_t n_slices;  /* what is left of the axes: everything but rows, columns and positions */
  int64_t between;   /* sizes of the axes between the two, or after both */
  int64_t row_blocks, n_row_blocks, column_blocks, n_column_blocks; /* of a run; of all */
  int64_t positions, chunk, n_chunks; /* neighbours; how many a block has at most */
  int64_t n;
} laci_blocks;

typedef struct laci_block {
  int64_t first;
  int n_rows, n_columns;
  int64_t n_positions;
} laci_block;

/** Fails LAC_BAD_SHAPE where the view's rows make no sense, naming the weight; a view that
 * laci_weight_check accepts. */
LAC_MUST_CHECK lac_status laci_blocks_init(laci_blocks *blocks, const laci_weight_view *weight,
                                           laci_blocks_size size, lac_error *err);

/** Elements that a block has at most: capacity of each of the arrays below. */
int64_t laci_blocks_capacity(const laci_blocks *blocks);

laci_block laci_block_at(const laci_blocks *blocks, int64_t index);

static inline int64_t laci_block_element(const laci_blocks *blocks, const laci_block *block,
                                         int row, int column) {
  return block->first + row * blocks->weight->row_step + column * blocks->weight->inner;
}

/** laci_scores_read or laci_distances_read. */
typedef void laci_elements_read(const laci_weight_view *weight, int64_t first, int64_t n,
                                double *out);

/** out[(p * n_rows + row) * n_columns + column]; raw: working memory of the same size. */
void laci_block_read(const laci_blocks *blocks, const laci_block *block, laci_elements_read *read,
                     double *raw, double *out);

#endif
