/* SPDX-License-Identifier: Apache-2.0
 * What the two algorithms that compute Gram matrices share (gram.c, correlate.c). Private to
 * kernel/gram. */
#ifndef LACI_KERNEL_GRAM_GRAM_IN_H
#define LACI_KERNEL_GRAM_GRAM_IN_H

#include "base/min.h"
#include "kernel/gram/dots.h"
#include "kernel/gram/gram.h"

/* number of rows and columns in the block of H or K that one thread computes at once */
enum { LACI_GRAM_TILE = 64 };

static inline int64_t laci_gram_round_up_to_vectors(int64_t n) { /* n rounded up to whole vectors */
  return (n + LACI_DOTS_LANES - 1) / LACI_DOTS_LANES * LACI_DOTS_LANES;
}

/** Rounds n up to an odd number of vectors. Lines at distances of a power of two would all map to
 * the same few sets of a cache. */
static inline int64_t laci_gram_round_up_to_odd_vectors(int64_t n) {
  const int64_t whole = laci_gram_round_up_to_vectors(n);
  return whole % (2 * (int64_t)LACI_DOTS_LANES) == 0 ? whole + LACI_DOTS_LANES : whole;
}

/** Adds a square block on the diagonal: its upper triangle, and a few elements below the
 * diagonal. */
static inline void laci_gram_add_upper_half(laci_dots_kernel *kernel, const laci_dots *square) {
  enum { STRIP = 16 };
  for (int i = 0; i < square->m; i += STRIP) {
    laci_dots strip = *square;
    strip.m = (int)laci_min(STRIP, square->m - i);
    strip.n -= i;
    strip.a += i * square->lda;
    strip.b += i * square->ldb;
    strip.out += i * square->ldo + i;
    kernel(&strip);
  }
}

uint64_t laci_gram_correlate_scratch_bytes(const laci_unfold *unfold, bool with_dense);
void laci_gram_correlate(const laci_gram *gram, laci_pool *pool);

#endif
