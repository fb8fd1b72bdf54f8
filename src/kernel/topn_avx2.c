/* SPDX-License-Identifier: Apache-2.0
 * topn.h by AVX2: what topn_vector_in.h needs of it. Bytes are summed by psadbw into 64 bits, words
 * by pmaddwd with ones into 32. */
#include <immintrin.h>
#include <stdint.h>

typedef __m256i lanes;

static inline lanes load(const char *at) {
  return _mm256_loadu_si256((const __m256i *)(const void *)at);
}

static inline void store(char *at, lanes v) { _mm256_storeu_si256((__m256i *)(void *)at, v); }
static inline lanes set_zero(void) { return _mm256_setzero_si256(); }
static inline lanes max_u8(lanes a, lanes b) { return _mm256_max_epu8(a, b); }
static inline lanes min_u8(lanes a, lanes b) { return _mm256_min_epu8(a, b); }
static inline lanes max_i16(lanes a, lanes b) { return _mm256_max_epi16(a, b); }
static inline lanes min_i16(lanes a, lanes b) { return _mm256_min_epi16(a, b); }

static inline lanes add_u8(lanes sums, lanes v) {
  return _mm256_add_epi32(sums, _mm256_sad_epu8(v, _mm256_setzero_si256()));
}

static inline lanes add_i16(lanes sums, lanes v) {
  return _mm256_add_epi32(sums, _mm256_madd_epi16(v, _mm256_set1_epi16(1)));
}

/* Neighbours first, in 64 bits: sums of many lanes leave 32. */
static inline int64_t total_of(lanes sums) {
  __m256i low = _mm256_and_si256(sums, _mm256_set1_epi64x(UINT32_MAX));
  __m256i wide = _mm256_add_epi64(low, _mm256_srli_epi64(sums, 32));
  __m128i half = _mm_add_epi64(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
  return _mm_cvtsi128_si64(half) + _mm_extract_epi64(half, 1);
}

#define TOPN_NTH laci_nth_largest_avx2
#define TOPN_SUM laci_top_sum_avx2
#include "kernel/topn_vector_in.h"
