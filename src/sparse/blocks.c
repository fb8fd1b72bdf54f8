/* SPDX-License-Identifier: Apache-2.0
 * Computes where the blocks of a weight (blocks.h) are in memory. If rows are the outer axis, or
 * the inner one, the flat index of an element is
 *
 *     rows outside:  ((a * rows + row) * between + b) * columns * inner + column * inner + p
 *     rows inside:   (o * columns + column) * inner + (a * rows + row) * between + p
 *
 * and the slices are numbered by (a, b) or by (o, a). */
#include "sparse/blocks.h"

#include "base/divide.h"
#include "base/error.h"

enum { ELEMENTS_AT_ONCE = 1 << 14 };

static lac_status check_rows(const laci_weight_view *w, bool outside, lac_error *err) {
  const int64_t all = outside ? w->outer : w->inner;
  const int64_t line = w->columns * w->inner;
  bool good = w->rows >= 1 && w->row_step >= 1 && w->row_run >= 1 && w->rows % w->row_run == 0 &&
              (!outside || w->row_step % line == 0);
  if (good) {
    const int64_t between = outside ? w->row_step / line : w->row_step;
    good = all % w->rows == 0 && all / w->rows % between == 0;
  }
  if (good) return LAC_OK;
  return laci_fail(
      err, LAC_BAD_SHAPE,
      "%s: %lld output channels, %lld elements apart, in runs of %lld, are no axis of it", w->name,
      (long long)w->rows, (long long)w->row_step, (long long)w->row_run);
}

lac_status laci_blocks_init(laci_blocks *b, const laci_weight_view *w, laci_blocks_size size,
                            lac_error *err) {
  *b = (laci_blocks){.weight = w, .size = size};
  if (w->outer * w->columns * w->inner == 0) return LAC_OK;
  const int64_t line = w->columns * w->inner;
  b->rows_outside = w->row_step >= line;
  lac_status st = check_rows(w, b->rows_outside, err);
  if (st) return st;
  b->between = b->rows_outside ? w->row_step / line : w->row_step;
  b->n_slices = b->rows_outside ? w->outer / w->rows : w->outer * (w->inner / w->rows / b->between);
  b->row_blocks = laci_ceil_div(w->row_run, size.rows);
  b->n_row_blocks = b->row_blocks * (w->rows / w->row_run);
  b->column_blocks = laci_ceil_div(w->run, size.columns);
  b->n_column_blocks = b->column_blocks * (w->columns / w->run);
  b->positions = b->rows_outside ? w->inner : b->between;
  b->chunk = ELEMENTS_AT_ONCE / ((int64_t)size.rows * size.columns);
  if (b->chunk < 1) b->chunk = 1;
  if (b->chunk > b->positions) b->chunk = b->positions;
  b->n_chunks = laci_ceil_div(b->positions, b->chunk);
  b->n = b->n_slices * b->n_row_blocks * b->n_column_blocks * b->n_chunks;
  return LAC_OK;
}

int64_t laci_blocks_largest_block(const laci_blocks *b) {
  return (int64_t)b->size.rows * b->size.columns * b->chunk;
}

/* Along an axis, a run of `run` elements is divided into `blocks` blocks of up to `size`. Returns
 * where block number `number` begins, and sets *length to its length. */
static int64_t find_block_in_run(int64_t number, int64_t blocks, int64_t run, int size,
                                 int *length) {
  const int64_t in_run = number % blocks * size, left = run - in_run;
  *length = left < size ? (int)left : size;
  return number / blocks * run + in_run;
}

static int64_t first_element_of_slice(const laci_blocks *b, int64_t slice) {
  const laci_weight_view *w = b->weight;
  if (b->rows_outside) {
    const int64_t a = slice / b->between, at = slice % b->between;
    return (a * w->rows * b->between + at) * w->columns * w->inner;
  }
  const int64_t block = w->rows * b->between, a_line = w->inner / block;
  return slice / a_line * w->columns * w->inner + slice % a_line * block;
}

laci_block laci_block_at(const laci_blocks *b, int64_t index) {
  const laci_weight_view *w = b->weight;
  laci_block k;
  const int64_t chunk = index % b->n_chunks;
  index /= b->n_chunks;
  const int64_t column = find_block_in_run(index % b->n_column_blocks, b->column_blocks, w->run,
                                           b->size.columns, &k.n_columns);
  index /= b->n_column_blocks;
  const int64_t row = find_block_in_run(index % b->n_row_blocks, b->row_blocks, w->row_run,
                                        b->size.rows, &k.n_rows);
  const int64_t p = chunk * b->chunk, left = b->positions - p;
  k.n_positions = left < b->chunk ? left : b->chunk;
  k.first = first_element_of_slice(b, index / b->n_row_blocks) + row * w->row_step +
            column * w->inner + p;
  return k;
}

/* One line of the block is read at a time, as one range of elements. It is a line of columns if the
 * block has all inner indices, since columns are then contiguous. It is a line of rows if the block
 * has all elements between two rows. */
void laci_block_read_scores(const laci_blocks *b, const laci_block *k, laci_elements_read *read,
                            double *raw, double *out) {
  const laci_weight_view *w = b->weight;
  const int64_t np = k->n_positions;
  const int columns = k->n_columns, rows = k->n_rows;
  const bool by_row = np == w->inner, by_column = !by_row && np == w->row_step;
  for (int row = 0; row < rows; row++) {
    double *to = raw + row * columns * np;
    if (by_row) read(w, laci_block_element(b, k, row, 0), columns * np, to);
    for (int column = 0; column < columns && !by_row && !by_column; column++)
      read(w, laci_block_element(b, k, row, column), np, to + column * np);
  }
  for (int column = 0; column < columns && by_column; column++)
    read(w, laci_block_element(b, k, 0, column), rows * np, raw + column * rows * np);
  for (int row = 0; row < rows; row++) {
    for (int column = 0; column < columns; column++) {
      const double *from = raw + (by_column ? column * rows + row : row * columns + column) * np;
      double *to = out + row * columns + column;
      for (int64_t p = 0; p < np; p++) to[p * rows * columns] = from[p];
    }
  }
}
