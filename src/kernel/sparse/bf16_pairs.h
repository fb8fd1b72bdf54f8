/* SPDX-License-Identifier: Apache-2.0
 * Products of bf16 (product.h). Four bytes hold the values of two channels (a bf16 pair), and a
 * "dot" multiplies and adds two columns at once.
 *
 * A block of four columns is two bf16 pairs: columns 0 and 1, and columns 2 and 3. Instructions
 * that move no 16-bit word to another lane can combine any two columns of a block into a bf16 pair;
 * the instructions used determine which of the two is the lower half. A row that keeps one or two
 * columns of a block has one dot, of a pair that holds them. A row that keeps more has two dots, 0
 * 1 and 2 3, with zero weights for columns it does not keep. */
#ifndef LACI_KERNEL_SPARSE_BF16_PAIRS_H
#define LACI_KERNEL_SPARSE_BF16_PAIRS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernel/sparse/product.h"
#include "tensor/bf16.h"
#include "kernel/variants.h"

enum { LACI_SPARSE_BLOCK = 4, LACI_SPARSE_N_DOTS = 6 };

/** Two columns of a block that form a bf16 pair. */
typedef struct laci_sparse_dot_columns {
  int low, high;
} laci_sparse_dot_columns;

/** All pairs of columns; a row's dots are in this order. */
static const laci_sparse_dot_columns laci_sparse_all_dots[LACI_SPARSE_N_DOTS] = {
    {0, 1}, {2, 3}, {0, 3}, {2, 1}, {0, 2}, {3, 1}};

/** Finds the dots of up to 32 rows in a block of four columns. kept[column]: bit r is set where
 * row r keeps the column. Sets twos[i]: bit r is set where row r has the dot
 * laci_sparse_all_dots[i]. */
static inline void laci_sparse_find_row_dots(const uint32_t *kept, uint32_t *twos) {
  const uint32_t a = kept[0], b = kept[1], c = kept[2], d = kept[3];
  twos[2] = a & d & ~b & ~c;
  twos[3] = b & c & ~a & ~d;
  twos[4] = a & c & ~b & ~d;
  twos[5] = b & d & ~a & ~c;
  const uint32_t across = twos[2] | twos[3] | twos[4] | twos[5];
  twos[0] = (a | b) & ~across;
  twos[1] = (c | d) & ~across;
}

/** Returns x, or a zero with the sign of x where x is denormal. */
static inline float laci_sparse_flush_denormal(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  bits &= bits & 0x7F800000U ? UINT32_MAX : 0x80000000U;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/** Return the lower or the higher half of a bf16 pair as a float. */
static inline float laci_bf16_pair_low(uint32_t pair) { return laci_bf16_value((uint16_t)pair); }
static inline float laci_bf16_pair_high(uint32_t pair) {
  return laci_bf16_value((uint16_t)(pair >> 16));
}

/** Rounds a float to the nearest bf16, as vcvtne2ps2bf16 does. */
static inline uint16_t laci_bf16_from_float(float x) {
  return laci_bf16_round(laci_sparse_flush_denormal(x));
}

static inline uint32_t laci_bf16_pair(float low, float high) {
  return laci_bf16_from_float(low) | (uint32_t)laci_bf16_from_float(high) << 16;
}

/** Returns sum + x * weight, as vdpbf16ps does: the higher halves are multiplied first, each half
 * by one fused multiply-add; denormal operands and results are flushed to zero. */
static inline float laci_sparse_add_dot(float sum, uint32_t x, uint32_t weight) {
  const float high = laci_sparse_flush_denormal(laci_bf16_pair_high(x));
  const float low = laci_sparse_flush_denormal(laci_bf16_pair_low(x));
  sum = fmaf(high, laci_sparse_flush_denormal(laci_bf16_pair_high(weight)),
             laci_sparse_flush_denormal(sum));
  sum = fmaf(low, laci_sparse_flush_denormal(laci_bf16_pair_low(weight)),
             laci_sparse_flush_denormal(sum));
  return laci_sparse_flush_denormal(sum);
}

/** Rounds n floats by laci_bf16_from_float. Defined in bf16_round_isa.c. */
typedef void laci_sparse_round(const float *from, int64_t n, uint16_t *to);
#define LACI_SPARSE_ROUND_DECLARE(name, level) laci_sparse_round laci_sparse_round_##name;
LACI_KERNEL_VARIANTS(LACI_SPARSE_ROUND_DECLARE)
#undef LACI_SPARSE_ROUND_DECLARE
/** Returns the variant for the SIMD level in force (cpu/cpu.h). Defined in bf16_pairs.c. */
laci_sparse_round *laci_sparse_round_variant(void);

/** The reference for products of bf16 pairs; parts begin at an even row. Defined in
 * product_bf16_scalar.c. */
laci_sparse_multiply laci_sparse_multiply_bf16_scalar;

#endif
