/* SPDX-License-Identifier: Apache-2.0
 * maxsum.h by AVX2: a maximum, then one instruction that sums neighbours (psadbw against zero for
 * bytes, pmaddwd with ones for words), then an addition. A 2 x 4 tile keeps its eight sums in the
 * sixteen registers. Tiles at the edge repeat their last column and drop what that gives. */
#include "kernel/maxsum.h"

#include <immintrin.h>

enum { TILE_T = 2, TILE_X = 4 };

static inline __m256i step_u8(__m256i sum, __m256i a, __m256i b) {
  return _mm256_add_epi32(sum, _mm256_sad_epu8(_mm256_max_epu8(a, b), _mm256_setzero_si256()));
}

static inline __m256i step_i16(__m256i sum, __m256i a, __m256i b) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_max_epi16(a, b), _mm256_set1_epi16(1)));
}

static inline __m256i load(const char *at) {
  return _mm256_loadu_si256((const __m256i *)(const void *)at);
}

static inline int32_t sum_of_lanes(__m256i v) {
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4E));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xB1));
  return _mm_cvtsi128_si32(s);
}

static inline int lower(int a, int b) { return a < b ? a : b; }

typedef __m256i step(__m256i sum, __m256i a, __m256i b);

/* One tile over 32-byte pieces of two columns by four; `add` is known where this is inlined. */
static inline __attribute__((always_inline)) void tile(const char *const t[TILE_T],
                                                       const char *const x[TILE_X], size_t bytes,
                                                       step *add, int32_t out[TILE_T][TILE_X]) {
  __m256i sum[TILE_T][TILE_X];
  for (int i = 0; i < TILE_T; i++) {
    for (int j = 0; j < TILE_X; j++) sum[i][j] = _mm256_setzero_si256();
  }
  for (size_t at = 0; at < bytes; at += 32) {
    __m256i a0 = load(t[0] + at), a1 = load(t[1] + at);
    for (int j = 0; j < TILE_X; j++) {
      __m256i b = load(x[j] + at);
      sum[0][j] = add(sum[0][j], a0, b);
      sum[1][j] = add(sum[1][j], a1, b);
    }
  }
  for (int i = 0; i < TILE_T; i++) {
    for (int j = 0; j < TILE_X; j++) out[i][j] = sum_of_lanes(sum[i][j]);
  }
}

static inline __attribute__((always_inline)) void all_tiles(const laci_maxsum_job *job,
                                                            size_t bytes, step *add) {
  for (int i0 = 0; i0 < job->nt; i0 += TILE_T) {
    const char *a[TILE_T];
    for (int i = 0; i < TILE_T; i++) a[i] = job->t[lower(i0 + i, job->nt - 1)];
    for (int j0 = 0; j0 < job->nx; j0 += TILE_X) {
      const char *b[TILE_X];
      for (int j = 0; j < TILE_X; j++) b[j] = job->x[lower(j0 + j, job->nx - 1)];
      int32_t sums[TILE_T][TILE_X];
      tile(a, b, bytes, add, sums);
      for (int i = 0; i < lower(TILE_T, job->nt - i0); i++) {
        int32_t *out = job->out + (size_t)(i0 + i) * job->out_stride + (size_t)j0;
        for (int j = 0; j < lower(TILE_X, job->nx - j0); j++) out[j] += sums[i][j];
      }
    }
  }
}

void laci_maxsum_u8_avx2(const laci_maxsum_job *job) { all_tiles(job, job->rows, step_u8); }

void laci_maxsum_i16_avx2(const laci_maxsum_job *job) { all_tiles(job, 2 * job->rows, step_i16); }
