/* SPDX-License-Identifier: Apache-2.0
 * What the variants of byte_product.h share: from sums of bytes to floats. */
#ifndef LACI_KERNEL_LINEAR_BYTE_PRODUCT_IN_H
#define LACI_KERNEL_LINEAR_BYTE_PRODUCT_IN_H

#include <string.h>

#include "kernel/linear/byte_product.h"

/** Numbers for a block of 16 columns, the same for all rows of x: the product s of a row is sums -
 * less (+ offsets times the row's sum of integers); `scale` multiplies s. */
typedef struct byte_block {
  uint32_t less[LACI_BYTE_COLUMNS];
  float scale[LACI_BYTE_COLUMNS];
} byte_block;

static inline void prepare_byte_block(const laci_byte_product *p, int64_t block, byte_block *b) {
  const int64_t first = block * LACI_BYTE_COLUMNS;
  for (int c = 0; c < LACI_BYTE_COLUMNS; c++) {
    b->less[c] = (uint32_t)p->rows.zero * (uint32_t)p->matrix.sums[first + c];
    b->scale[c] = p->rows.scale * p->matrix.scale[first + c];
  }
}

/** Writes y for one row of a block. sums: [16] sums over k of x[row][k] * w[k][column]. Unsigned
 * numbers may wrap around in between; s fits in 32 bits. */
static inline void finish_byte_sums(const laci_byte_product *p, int64_t row, int64_t block,
                                    const byte_block *b, const int32_t *sums) {
  const laci_byte_matrix *m = &p->matrix;
  const int64_t first = block * LACI_BYTE_COLUMNS, n = m->columns - first;
  float *y = p->y + row * p->y_stride + first, made[LACI_BYTE_COLUMNS];
  uint32_t s[LACI_BYTE_COLUMNS];
  for (int c = 0; c < LACI_BYTE_COLUMNS; c++) s[c] = (uint32_t)sums[c] - b->less[c];
  if (m->offsets) {
    const uint32_t steps =
        (uint32_t)p->rows.sums[row] - (uint32_t)p->rows.zero * (uint32_t)m->depth;
    for (int c = 0; c < LACI_BYTE_COLUMNS; c++) s[c] += (uint32_t)m->offsets[first + c] * steps;
  }
  for (int c = 0; c < LACI_BYTE_COLUMNS; c++)
    made[c] = (float)(int32_t)s[c] * b->scale[c] + m->bias[first + c];
  if (n >= LACI_BYTE_COLUMNS) memcpy(y, made, sizeof made);
  else memcpy(y, made, (size_t)n * sizeof *made);
}

#endif
