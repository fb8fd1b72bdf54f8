/* SPDX-License-Identifier: Apache-2.0
 * byte_product.h by the steps of sparse/byte_pairs.h: eight rows of x times eight columns of the
 * matrix at a time. */
#include "kernel/linear/byte_product_in.h"
#include "kernel/sparse/byte_pairs.h"

enum { COLUMNS = LACI_BYTE_COLUMNS, EIGHT = LACI_BYTE_PAIRS_ROWS };

/* Computes the sums of at most eight rows for a block of 16 columns, [row][16]. */
static void sum_rows(const laci_byte_product *p, const laci_byte_pairs_lines *lines, int64_t block,
                     int32_t *sums) {
  int32_t half[EIGHT * EIGHT] __attribute__((aligned(LACI_BYTE_PAIRS_BYTES)));
  for (int side = 0; side < COLUMNS / EIGHT; side++) {
    laci_byte_pairs_sum_lines(p->matrix.pairs, block * (COLUMNS / EIGHT) + side, lines, half);
    for (int row = 0; row < lines->n; row++)
      memcpy(sums + row * COLUMNS + side * EIGHT, half + row * EIGHT, EIGHT * sizeof *half);
  }
}

void laci_multiply_bytes_arranged(const laci_byte_product *p, const laci_byte_part *part) {
  int32_t sums[EIGHT * COLUMNS];
  for (int64_t block = part->block; block < part->block_end; block++) {
    byte_block b;
    prepare_byte_block(p, block, &b);
    for (int64_t row = part->row; row < part->row_end; row += EIGHT) {
      const int64_t left = part->row_end - row;
      const laci_byte_pairs_lines lines = {p->rows.x + row * p->rows.stride, p->rows.stride,
                                           left < EIGHT ? (int)left : EIGHT};
      sum_rows(p, &lines, block, sums);
      for (int at = 0; at < lines.n; at++)
        finish_byte_sums(p, row + at, block, &b, sums + (ptrdiff_t)at * COLUMNS);
    }
  }
}
