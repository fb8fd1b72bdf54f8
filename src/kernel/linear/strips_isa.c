/* SPDX-License-Identifier: Apache-2.0
 * strips.h for every instruction set that has vectors: the build compiles this once for each
 * (variants.h).
 *
 * A tile of rows and strips is computed at a time, its sums in registers. Many rows share what is
 * loaded of a strip. A single row has no such gain, and takes several strips at once, since one
 * chain of additions would wait for itself. */
#include "kernel/linear/strips.h"

#if defined(__AVX512F__)
#include <immintrin.h>
enum { LANES = 16, MANY = 4, FEW_ROWS = 4, ONE_ROW = 8 };
typedef __m512 lanes;
#define LOAD(from) _mm512_loadu_ps(from)
#define STORE(to, x) _mm512_storeu_ps(to, x)
#define EVERY(x) _mm512_set1_ps(x)
#define FMA(a, b, sum) _mm512_fmadd_ps(a, b, sum)
#elif defined(__AVX2__)
#include <immintrin.h>
enum { LANES = 8, MANY = 1, FEW_ROWS = 2, ONE_ROW = 4 };
typedef __m256 lanes;
#define LOAD(from) _mm256_loadu_ps(from)
#define STORE(to, x) _mm256_storeu_ps(to, x)
#define EVERY(x) _mm256_set1_ps(x)
#define FMA(a, b, sum) _mm256_fmadd_ps(a, b, sum)
#else
#include <arm_neon.h>
enum { LANES = 4, MANY = 1, FEW_ROWS = 1, ONE_ROW = 2 };
typedef float32x4_t lanes;
#define LOAD(from) vld1q_f32(from)
#define STORE(to, x) vst1q_f32(to, x)
#define EVERY(x) vdupq_n_f32(x)
#define FMA(a, b, sum) vfmaq_f32(sum, a, b)
#endif
enum { VECTORS = LACI_STRIP / LANES, ROWS = 6, MOST = 16 };

#define INLINE static inline __attribute__((always_inline))

/* Computes a tile of y: some rows of some strips. `rows` and `strips` are constants where this is
 * inlined. */
INLINE void multiply_tile(const laci_strip_product *p, int64_t row, int64_t strip, const int rows,
                          const int strips) {
  lanes sum[ROWS][MOST];
  const float *x = p->x + row * p->x_row, *w = p->strips + strip * p->depth * LACI_STRIP;
  const float *start = p->start + row * p->start_row + strip * LACI_STRIP;
  float *y = p->y + row * p->y_row + strip * LACI_STRIP;
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++) {
#pragma GCC unroll 16
    for (int v = 0; v < strips * VECTORS; v++)
      sum[r][v] = LOAD(start + r * p->start_row + v * LANES);
  }
  for (int64_t k = 0; k < p->depth; k++, w += LACI_STRIP) {
    lanes b[MOST];
#pragma GCC unroll 16
    for (int v = 0; v < strips * VECTORS; v++)
      b[v] = LOAD(w + v / VECTORS * p->depth * LACI_STRIP + v % VECTORS * LANES);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
      const lanes every = EVERY(x[r * p->x_row + k]);
#pragma GCC unroll 16
      for (int v = 0; v < strips * VECTORS; v++) sum[r][v] = FMA(every, b[v], sum[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++) {
#pragma GCC unroll 16
    for (int v = 0; v < strips * VECTORS; v++) STORE(y + r * p->y_row + v * LANES, sum[r][v]);
  }
}

/* Computes rows [row, row + rows) of all strips, `at_once` of them at a time. */
INLINE void multiply_row_block(const laci_strip_product *p, int64_t row, int64_t strip, int64_t end,
                               const int rows, const int at_once) {
  for (; strip + at_once <= end; strip += at_once) multiply_tile(p, row, strip, rows, at_once);
  for (; strip < end; strip++) multiply_tile(p, row, strip, rows, 1);
}

/* Computes n rows from `row` on, of which there are fewer than ROWS. */
static void multiply_few_rows(const laci_strip_product *p, int64_t row, int64_t n, int64_t strip,
                              int64_t end) {
  switch (n) {
    case 5: multiply_row_block(p, row, strip, end, 5, MANY); break;
    case 4: multiply_row_block(p, row, strip, end, 4, MANY); break;
    case 3: multiply_row_block(p, row, strip, end, 3, FEW_ROWS); break;
    case 2: multiply_row_block(p, row, strip, end, 2, FEW_ROWS); break;
    case 1: multiply_row_block(p, row, strip, end, 1, ONE_ROW); break;
    default: break;
  }
}

void LACI_VARIANT(laci_multiply_strips)(const laci_strip_product *p) {
  if (p->n_rows < ROWS) {
    multiply_few_rows(p, 0, p->n_rows, 0, p->n_strips);
    return;
  }
  /* The last rows, fewer than two tiles, are halved: a tile of one or two rows would wait for its
   * own sums. */
  const int64_t last = p->n_rows % ROWS ? ROWS + p->n_rows % ROWS : 0;
  for (int64_t strip = 0; strip < p->n_strips; strip += MANY) { /* these strips stay in the cache
                                                                   while all rows use them */
    const int64_t end = strip + MANY < p->n_strips ? strip + MANY : p->n_strips;
    int64_t row = 0;
    for (; row + ROWS <= p->n_rows - last; row += ROWS) {
      multiply_row_block(p, row, strip, end, ROWS, MANY);
    }
    if (last - last / 2 == ROWS) multiply_row_block(p, row, strip, end, ROWS, MANY);
    else multiply_few_rows(p, row, last - last / 2, strip, end);
    multiply_few_rows(p, row + last - last / 2, last / 2, strip, end);
  }
}
