/* SPDX-License-Identifier: Apache-2.0
 * The two algorithms that sum a layer's products, and what they share. Private to kernel/gram. */
#ifndef LACI_KERNEL_GRAM_GRAM_IN_H
#define LACI_KERNEL_GRAM_GRAM_IN_H

#include "base/least.h"
#include "kernel/gram/dots.h"
#include "kernel/gram/gram.h"

enum { LACI_GRAM_TILE = 64 }; /* rows and columns of a sum that one thread takes */

static inline int64_t laci_gram_whole(int64_t n) { /* vectors */
  return (n + LACI_DOTS_LANES - 1) / LACI_DOTS_LANES * LACI_DOTS_LANES;
}

/** The same, an odd number of them: lines that are a power of two apart would share the few places
 * that a cache has for each. */
static inline int64_t laci_gram_apart(int64_t n) {
  const int64_t whole = laci_gram_whole(n);
  return whole % (2 * (int64_t)LACI_DOTS_LANES) == 0 ? whole + LACI_DOTS_LANES : whole;
}

/** A square on the diagonal: about the upper half of it. */
static inline void laci_gram_half(laci_dots_kernel *kernel, const laci_dots *square) {
  enum { STRIP = 16 };
  for (int i = 0; i < square->m; i += STRIP) {
    laci_dots strip = *square;
    strip.m = (int)laci_least(STRIP, square->m - i);
    strip.n -= i;
    strip.a += i * square->lda;
    strip.b += i * square->ldb;
    strip.out += i * square->ldo + i;
    kernel(&strip);
  }
}

uint64_t laci_gram_correlate_scratch(const laci_unfold *unfold, bool with_dense);
void laci_gram_correlate(const laci_gram *gram, laci_pool *pool);

#endif
