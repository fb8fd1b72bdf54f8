/* SPDX-License-Identifier: Apache-2.0
 * The reference for products of int8 (int8x4.h). Integer sums are the same in any order. */
#include <stddef.h>
#include <string.h>

#include "kernel/sparse/int8x4.h"
#include "kernel/sparse/product_strips_in.h"

enum { LANES = LACI_SPARSE_LANES, INT8X4 = LACI_INT8X4_CHANNELS, TILES = LACI_SPARSE_STRIP };

/* Adds weight times one byte of x to the sums, in 16 lanes. Local copies and plain loops let the
 * compiler vectorize it. */
static void add_weighted_bytes(const float *x, int shift, uint32_t weight, uint32_t *sums) {
  uint32_t int8x4[LANES];
  memcpy(int8x4, x, sizeof int8x4);
  uint32_t sum[LANES];
  memcpy(sum, sums, sizeof sum);
#pragma GCC unroll 1
  for (int lane = 0; lane < LANES; lane++) sum[lane] += weight * (int8x4[lane] >> shift & 0xFFU);
  memcpy(sums, sum, sizeof sum);
}

/* Computes the sums [tile][16] of one row. They may wrap, and so they are unsigned. */
static void compute_row_sums(const laci_sparse_product *p, const laci_sparse_operands *o,
                             const laci_sparse_strip *s, int64_t row, uint32_t *sums) {
  for (int at = 0; at < s->n_tiles * LANES; at++) sums[at] = (uint32_t)o->quantized->bias[row];
  for (int64_t k = p->row_begin[row]; k < p->row_begin[row + 1]; k++) {
    const uint32_t weight = (uint32_t)laci_sparse_weight_to_s8(o->weight[k]);
    const int shift = p->column[k] % INT8X4 * 8;
    for (int t = 0; t < s->n_tiles; t++) {
      add_weighted_bytes(s->x[t] + p->column_at[p->column[k]], shift, weight,
                         sums + (ptrdiff_t)(t * LANES));
    }
  }
}

/* Computes four rows, whose results share four bytes; or fewer, at the end of the part. */
static void multiply_four_rows(const laci_sparse_product *p, const laci_sparse_operands *o,
                               const laci_sparse_part *part, const laci_sparse_strip *s) {
  const int64_t n = part->row_last - part->row_first;
  uint32_t sums[INT8X4][TILES * LANES];
  float done[INT8X4 * TILES * LANES];
  for (int64_t at = 0; at < n; at++) compute_row_sums(p, o, s, part->row_first + at, sums[at]);
  for (int64_t at = 0; at < n * s->n_tiles; at++) {
    memcpy(done + at * LANES, sums[at % n] + at / n * LANES, LANES * sizeof *done);
  }
  laci_sparse_finish_scalar(o, p->row_stride, LACI_SPARSE_S8, part, done);
}

void laci_sparse_multiply_int8x4_scalar(const laci_sparse_product *p, const laci_sparse_operands *o,
                                        const laci_sparse_part *part) {
  laci_sparse_for_each_strip(p, o, part, INT8X4, multiply_four_rows);
}
