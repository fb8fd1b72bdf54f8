/* SPDX-License-Identifier: Apache-2.0
 * topn.h by AVX-512: what topn_vector_in.h needs of it. Bytes are summed by psadbw into 64 bits,
 * words by a dot product with ones into 32. */
#include <immintrin.h>
#include <stdint.h>

typedef __m512i lanes;

static inline lanes load(const char *at) { return _mm512_loadu_si512(at); }
static inline void store(char *at, lanes v) { _mm512_storeu_si512(at, v); }
static inline lanes set_zero(void) { return _mm512_setzero_si512(); }
static inline lanes max_u8(lanes a, lanes b) { return _mm512_max_epu8(a, b); }
static inline lanes min_u8(lanes a, lanes b) { return _mm512_min_epu8(a, b); }
static inline lanes max_i16(lanes a, lanes b) { return _mm512_max_epi16(a, b); }
static inline lanes min_i16(lanes a, lanes b) { return _mm512_min_epi16(a, b); }

static inline lanes add_u8(lanes sums, lanes v) {
  return _mm512_add_epi32(sums, _mm512_sad_epu8(v, _mm512_setzero_si512()));
}

static inline lanes add_i16(lanes sums, lanes v) {
  return _mm512_dpwssd_epi32(sums, v, _mm512_set1_epi16(1));
}

/* Neighbours first, in 64 bits: sums of many lanes leave 32. */
static inline int64_t total_of(lanes sums) {
  __m512i low = _mm512_and_si512(sums, _mm512_set1_epi64(UINT32_MAX));
  return _mm512_reduce_add_epi64(_mm512_add_epi64(low, _mm512_srli_epi64(sums, 32)));
}

#define TOPN_NTH laci_nth_largest_avx512
#define TOPN_SUM laci_top_sum_avx512
#include "kernel/topn_vector_in.h"
