/* SPDX-License-Identifier: Apache-2.0
 * maxsum.h by AVX-512 with VNNI: a maximum, then one dot product with ones that adds four bytes (or
 * two words) into each 32-bit lane. A 4 x 4 tile keeps sixteen sums in registers, so that every
 * load serves four of them. Tiles at the edge repeat their last column and drop what that gives. */
#include "kernel/maxsum.h"

#include <immintrin.h>

enum { TILE = 4 };

static inline __m512i step_u8(__m512i sum, __m512i a, __m512i b) {
  return _mm512_dpbusd_epi32(sum, _mm512_max_epu8(a, b), _mm512_set1_epi8(1));
}

static inline __m512i step_i16(__m512i sum, __m512i a, __m512i b) {
  return _mm512_dpwssd_epi32(sum, _mm512_max_epi16(a, b), _mm512_set1_epi16(1));
}

static inline int lower(int a, int b) { return a < b ? a : b; }

typedef __m512i step(__m512i sum, __m512i a, __m512i b);

/* One tile over 64-byte pieces of four columns by four; `add` is known where this is inlined. */
static inline __attribute__((always_inline)) void tile(const char *const t[TILE],
                                                       const char *const x[TILE], size_t bytes,
                                                       step *add, int32_t out[TILE][TILE]) {
  __m512i sum[TILE][TILE];
  for (int i = 0; i < TILE; i++) {
    for (int j = 0; j < TILE; j++) sum[i][j] = _mm512_setzero_si512();
  }
  for (size_t at = 0; at < bytes; at += 64) {
    __m512i a[TILE];
    for (int i = 0; i < TILE; i++) a[i] = _mm512_loadu_si512(t[i] + at);
    for (int j = 0; j < TILE; j++) {
      __m512i b = _mm512_loadu_si512(x[j] + at);
      for (int i = 0; i < TILE; i++) sum[i][j] = add(sum[i][j], a[i], b);
    }
  }
  for (int i = 0; i < TILE; i++) {
    for (int j = 0; j < TILE; j++) out[i][j] = _mm512_reduce_add_epi32(sum[i][j]);
  }
}

static inline __attribute__((always_inline)) void all_tiles(const laci_maxsum_job *job,
                                                            size_t bytes, step *add) {
  for (int i0 = 0; i0 < job->nt; i0 += TILE) {
    const char *a[TILE];
    for (int i = 0; i < TILE; i++) a[i] = job->t[lower(i0 + i, job->nt - 1)];
    for (int j0 = 0; j0 < job->nx; j0 += TILE) {
      const char *b[TILE];
      for (int j = 0; j < TILE; j++) b[j] = job->x[lower(j0 + j, job->nx - 1)];
      int32_t sums[TILE][TILE];
      tile(a, b, bytes, add, sums);
      for (int i = 0; i < lower(TILE, job->nt - i0); i++) {
        int32_t *out = job->out + (size_t)(i0 + i) * job->out_stride + (size_t)j0;
        for (int j = 0; j < lower(TILE, job->nx - j0); j++) out[j] += sums[i][j];
      }
    }
  }
}

void laci_maxsum_u8_avx512(const laci_maxsum_job *job) { all_tiles(job, job->rows, step_u8); }

void laci_maxsum_i16_avx512(const laci_maxsum_job *job) { all_tiles(job, 2 * job->rows, step_i16); }
