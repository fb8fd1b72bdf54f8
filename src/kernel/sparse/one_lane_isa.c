/* SPDX-License-Identifier: Apache-2.0
 * The kernel of one_lane.h, compiled for every instruction set. AVX-512 has an instruction that
 * expands weights to rows. Other instruction sets sum one row after the other. */
#include "kernel/sparse/one_lane.h"
#include "kernel/variants.h"

#if defined(__AVX512F__)
#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

enum {
  HALF = LACI_ONE_LANE_ROWS / 2,
  LINE = 64,
  SECOND_CACHE = 2,
  FRACTION = 16 /* number of fraction bits in lines_per_column */
};

/* Expands weights to the lanes in `rows`; other lanes are zero. The compiler does not see that the
 * target register holds zeros. On some processors (Zen 4) the instruction waits for that register,
 * even where it writes all of it; with fresh zeros it does not wait long. */
INLINE __m512 expand_weights(__mmask16 rows, const float *weight) {
  __m512 zeros = _mm512_setzero_ps();
  __asm__("" : "+v"(zeros));
  return _mm512_mask_expand_ps(zeros, rows, _mm512_loadu_ps(weight));
}

/* Returns the number of cache lines to prefetch for each column, a fixed-point number with FRACTION
 * fraction bits. */
INLINE uint64_t lines_per_column(const laci_one_lane_prefetch *next, int64_t n_columns) {
  return ((uint64_t)next->n_lines << FRACTION) / (uint64_t)(n_columns + 1);
}

INLINE void prefetch_lines(const laci_one_lane_prefetch *next, uint64_t step, int64_t column) {
  const uint64_t line = ((uint64_t)column * step) >> FRACTION;
  __builtin_prefetch((const char *)next->at + line * LINE, 0, SECOND_CACHE);
}

void LACI_VARIANT(laci_one_lane_add)(const laci_one_lane_columns *c, float *sums) {
  const uint64_t step = lines_per_column(&c->next[0], c->n),
                 step2 = lines_per_column(&c->next[1], c->n);
  const float *w = c->weight;
  __m512 low = _mm512_loadu_ps(sums), high = _mm512_loadu_ps(sums + HALF);
  for (int64_t column = 0; column < c->n; column++) {
    const uint32_t rows = c->rows[column];
    const __mmask16 first = (__mmask16)rows, second = (__mmask16)(rows >> HALF);
    const __m512 x = _mm512_set1_ps(c->x[column]);
    prefetch_lines(&c->next[0], step, column);
    prefetch_lines(&c->next[1], step2, column);
    low = _mm512_mask3_fmadd_ps(expand_weights(first, w), x, low, first);
    high = _mm512_mask3_fmadd_ps(expand_weights(second, w + __builtin_popcount(first)), x, high,
                                 second);
    w += __builtin_popcount(rows);
  }
  _mm512_storeu_ps(sums, low);
  _mm512_storeu_ps(sums + HALF, high);
}
#else
#include <math.h>

void LACI_VARIANT(laci_one_lane_add)(const laci_one_lane_columns *c, float *sums) {
  const float *w = c->weight;
  for (int64_t column = 0; column < c->n; column++) {
    for (uint32_t left = c->rows[column]; left; left &= left - 1, w++) {
      float *sum = &sums[__builtin_ctz(left)];
      *sum = fmaf(*w, c->x[column], *sum);
    }
  }
}
#endif
