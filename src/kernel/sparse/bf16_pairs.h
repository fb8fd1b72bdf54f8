/* SPDX-License-Identifier: Apache-2.0
 * Products of bf16 (product.h): four bytes hold two channels, and a dot takes two columns.
 *
 * A block of four columns is two bf16 pairs, 0 1 and 2 3. Instructions that move no word across
 * lanes can combine any two columns of these into a bf16 pair; the instructions determine which of
 * the two is the lower half. A row that keeps one or two columns of a block has one dot, of the two
 * that hold them; one that keeps more has two, 0 1 and 2 3, with zeros where nothing is kept. */
#ifndef LACI_KERNEL_SPARSE_BF16_PAIRS_H
#define LACI_KERNEL_SPARSE_BF16_PAIRS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernel/sparse/product.h"
#include "tensor/bf16.h"
#include "kernel/variants.h"

enum { LACI_SPARSE_BLOCK = 4, LACI_SPARSE_N_TWOS = 6 };

/** Columns of a block as the halves of a bf16 pair. */
typedef struct laci_sparse_two {
  int low, high;
} laci_sparse_two;

/** In the order in which a row takes them. */
static const laci_sparse_two laci_sparse_twos[LACI_SPARSE_N_TWOS] = {{0, 1}, {2, 3}, {0, 3},
                                                                     {2, 1}, {0, 2}, {3, 1}};

/** Of each two the rows that have a dot of it; kept: of each column the rows that keep it. A bit is
 * a row. */
static inline void laci_sparse_find_twos(const uint32_t *kept, uint32_t *twos) {
  const uint32_t a = kept[0], b = kept[1], c = kept[2], d = kept[3];
  twos[2] = a & d & ~b & ~c;
  twos[3] = b & c & ~a & ~d;
  twos[4] = a & c & ~b & ~d;
  twos[5] = b & d & ~a & ~c;
  const uint32_t across = twos[2] | twos[3] | twos[4] | twos[5];
  twos[0] = (a | b) & ~across;
  twos[1] = (c | d) & ~across;
}

/** x, or a zero of its sign where x is too small to be normal. */
static inline float laci_sparse_flush(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  bits &= bits & 0x7F800000U ? UINT32_MAX : 0x80000000U;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/** The halves of a bf16 pair as floats. */
static inline float laci_sparse_low(uint32_t pair) { return laci_bf16_value((uint16_t)pair); }
static inline float laci_sparse_high(uint32_t pair) {
  return laci_bf16_value((uint16_t)(pair >> 16));
}

/** A float, rounded to the nearest bf16, as vcvtne2ps2bf16 does. */
static inline uint16_t laci_sparse_half(float x) { return laci_bf16_round(laci_sparse_flush(x)); }

static inline uint32_t laci_bf16_pair(float low, float high) {
  return laci_sparse_half(low) | (uint32_t)laci_sparse_half(high) << 16;
}

/** sum + x * weight, as vdpbf16ps does: the higher halves first, a fused multiply-add each, where
 * what is too small to be normal is zero, going in and coming out. */
static inline float laci_sparse_dot(float sum, uint32_t x, uint32_t weight) {
  const float high = laci_sparse_flush(laci_sparse_high(x));
  const float low = laci_sparse_flush(laci_sparse_low(x));
  sum = fmaf(high, laci_sparse_flush(laci_sparse_high(weight)), laci_sparse_flush(sum));
  sum = fmaf(low, laci_sparse_flush(laci_sparse_low(weight)), laci_sparse_flush(sum));
  return laci_sparse_flush(sum);
}

/** Floats [n] rounded by laci_sparse_half. bf16_round_isa.c */
typedef void laci_sparse_round(const float *from, int64_t n, uint16_t *to);
#define LACI_SPARSE_ROUND_DECLARE(name, level) laci_sparse_round laci_sparse_round_##name;
LACI_KERNEL_VARIANTS(LACI_SPARSE_ROUND_DECLARE)
#undef LACI_SPARSE_ROUND_DECLARE
/** The variant by the level in force (cpu/cpu.h). bf16_pairs.c */
laci_sparse_round *laci_sparse_round_now(void);

/** product.h's definition for products of bf16 pairs; parts begin at an even row.
 * product_bf16_scalar.c */
laci_sparse_multiply laci_sparse_multiply_bf16_scalar;

#endif
