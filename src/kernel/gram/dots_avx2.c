/* SPDX-License-Identifier: Apache-2.0
 * dots.h for AVX2: 12 of 16 registers are sums. */
#include "kernel/gram/dots.h"

#include <immintrin.h>

typedef __m256 vector;
enum { LANES = 8 };
#define ROWS 3
#define COLUMNS 4
#define LOAD(at) _mm256_loadu_ps(at)
#define TIMES(sum, a, b) _mm256_fmadd_ps(a, b, sum)
#define TOTAL(v) sum_of_lanes(v)

static inline float sum_of_lanes(__m256 v) {
  __m128 half = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  half = _mm_add_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
}

#include "kernel/gram/dots_text.def"

void laci_dots_avx2(const laci_dots *dots) { sum_runs(dots); }
