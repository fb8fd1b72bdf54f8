/* SPDX-License-Identifier: Apache-2.0
 * The reference for products of bf16 (bf16_pairs.h). It does step by step what one instruction of
 * AVX512-BF16 does. */
#include <stddef.h>

#include "kernel/sparse/bf16_pairs.h"
#include "kernel/sparse/product_strips_in.h"

enum { LANES = LACI_SPARSE_LANES, BLOCK = LACI_SPARSE_BLOCK, TILES = LACI_SPARSE_STRIP };

/* The weights of a row in one block of four columns. A bit says which columns the row keeps. */
typedef struct block {
  int64_t first; /* index of the block's first column */
  uint32_t kept[BLOCK];
  float weight[BLOCK];
} block;

/* Reads the block that kept weight k belongs to into *b. Returns the index of the first kept weight
 * after the block. */
static int64_t read_weights_of_block(const laci_sparse_product *p, const float *weight, int64_t k,
                                     int64_t end, block *b) {
  *b = (block){.first = p->column[k] / BLOCK * BLOCK};
  for (; k < end && p->column[k] < b->first + BLOCK; k++) {
    b->kept[p->column[k] - b->first] = 1;
    b->weight[p->column[k] - b->first] = weight[k];
  }
  return k;
}

/* Adds the products of two columns (low and high) and two weights to sums, in 16 lanes. low, high:
 * where each column's bf16 pairs are in x. shift: which half of the pair each column is. weight: a
 * pair. */
static void add_dot_to_lanes(const float *low, const float *high, const int shift[2],
                             uint32_t weight, float *sums) {
  uint32_t low_pairs[LANES], high_pairs[LANES];
  memcpy(low_pairs, low, sizeof low_pairs);
  memcpy(high_pairs, high, sizeof high_pairs);
  for (int lane = 0; lane < LANES; lane++) {
    const uint32_t x = (low_pairs[lane] >> shift[0] & 0xFFFFU) | high_pairs[lane] >> shift[1] << 16;
    sums[lane] = laci_sparse_add_dot(sums[lane], x, weight);
  }
}

static void add_block_terms(const laci_sparse_product *p, const laci_sparse_strip *s,
                            const block *b, float *sums) {
  uint32_t twos[LACI_SPARSE_N_DOTS];
  laci_sparse_find_row_dots(b->kept, twos);
  for (int at = 0; at < LACI_SPARSE_N_DOTS; at++) {
    const int low = laci_sparse_all_dots[at].low, high = laci_sparse_all_dots[at].high;
    if (!twos[at]) continue;
    const int64_t low_at = p->column_at[b->first + low / 2 * 2];
    const int64_t high_at = p->column_at[b->first + high / 2 * 2];
    const int shift[2] = {low % 2 * 16, high % 2 * 16};
    const uint32_t weight = laci_bf16_pair(b->weight[low], b->weight[high]);
    for (int t = 0; t < s->n_tiles; t++) {
      add_dot_to_lanes(s->x[t] + low_at, s->x[t] + high_at, shift, weight,
                       sums + (ptrdiff_t)(t * LANES));
    }
  }
}

/* Computes the sums [tile][16] of one row. */
static void compute_row_sums(const laci_sparse_product *p, const laci_sparse_operands *o,
                             const laci_sparse_strip *s, int64_t row, float *sums) {
  const int64_t end = p->row_begin[row + 1];
  block b;
  for (int at = 0; at < s->n_tiles * LANES; at++) sums[at] = o->bias[row];
  for (int64_t k = p->row_begin[row]; k < end;) {
    k = read_weights_of_block(p, o->weight, k, end, &b);
    add_block_terms(p, s, &b, sums);
  }
}

/* Computes two rows, whose results share bf16 pairs; or one row, if it is the last. */
static void multiply_two_rows(const laci_sparse_product *p, const laci_sparse_operands *o,
                              const laci_sparse_part *part, const laci_sparse_strip *s) {
  const int64_t n = part->row_last - part->row_first;
  float sums[2][TILES * LANES], done[2 * TILES * LANES];
  for (int64_t at = 0; at < n; at++) compute_row_sums(p, o, s, part->row_first + at, sums[at]);
  for (int64_t at = 0; at < n * s->n_tiles; at++) {
    memcpy(done + at * LANES, sums[at % n] + at / n * LANES, LANES * sizeof *done);
  }
  laci_sparse_finish_scalar(o, p->row_stride, LACI_SPARSE_BF16, part, done);
}

void laci_sparse_multiply_bf16_scalar(const laci_sparse_product *p, const laci_sparse_operands *o,
                                      const laci_sparse_part *part) {
  laci_sparse_for_each_strip(p, o, part, 2, multiply_two_rows);
}
