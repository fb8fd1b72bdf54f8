/* SPDX-License-Identifier: Apache-2.0
 * maxsum.h for AVX-512 with VNNI: a maximum, then a dot product with ones, which adds four bytes
 * (or two words) to each 32-bit lane. A 4 x 4 tile keeps sixteen sums in registers, so that every
 * load is used four times. At its end, the sums are transposed and added into one register, four
 * lanes for each row of the table. Tiles at the edge repeat their last column, and the additional
 * results are dropped. */
#include "kernel/search/maxsum.h"

#include <immintrin.h>

enum { TILE = 4 };

#define INLINE static inline __attribute__((always_inline))

/* Prevents gcc 12 from moving the sums between registers inside the loop. */
INLINE __m512i keep_in_registers(__m512i sum) {
  __asm__("" : "+v"(sum));
  return sum;
}

INLINE __m512i accumulate_max_u8(__m512i sum, __m512i a, __m512i b) {
  return keep_in_registers(_mm512_dpbusd_epi32(sum, _mm512_max_epu8(a, b), _mm512_set1_epi8(1)));
}

INLINE __m512i accumulate_max_i16(__m512i sum, __m512i a, __m512i b) {
  return keep_in_registers(_mm512_dpwssd_epi32(sum, _mm512_max_epi16(a, b), _mm512_set1_epi16(1)));
}

INLINE int smaller_of(int a, int b) { return a < b ? a : b; }

typedef __m512i step(__m512i sum, __m512i a, __m512i b);

/* Returns, in each 128 bits, partial sums of a, b, c, d. */
INLINE __m512i transpose_and_add_sums(const __m512i v[TILE]) {
  __m512i ab = _mm512_add_epi32(_mm512_unpacklo_epi32(v[0], v[1]),
                                _mm512_unpackhi_epi32(v[0], v[1])),
          cd = _mm512_add_epi32(_mm512_unpacklo_epi32(v[2], v[3]),
                                _mm512_unpackhi_epi32(v[2], v[3]));
  return _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
}

/* Adds 128-bit parts 0 and 1, and 2 and 3, of a, then of b. */
INLINE __m512i add_quarters(__m512i a, __m512i b) {
  return _mm512_add_epi32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xDD));
}

/* Computes one tile, four columns by four, in chunks of 64 bytes; the result has 128 bits for each
 * row. `add` is a constant where this is inlined. */
INLINE __m512i compute_table_tile(const char *const t[TILE], const char *const x[TILE],
                                  size_t bytes, step *add) {
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
  return add_quarters(add_quarters(transpose_and_add_sums(sum[0]), transpose_and_add_sums(sum[1])),
                      add_quarters(transpose_and_add_sums(sum[2]), transpose_and_add_sums(sum[3])));
}

INLINE void write_table_row(int32_t *out, __m128i sums, __mmask8 columns, bool adds) {
  if (adds) sums = _mm_add_epi32(sums, _mm_maskz_loadu_epi32(columns, out));
  _mm_mask_storeu_epi32(out, columns, sums);
}

INLINE void write_table_tile(const laci_maxsum_job *job, int i0, int j0, __m512i sums) {
  const __mmask8 columns = (__mmask8)((1U << smaller_of(TILE, job->nx - j0)) - 1);
  int32_t *out = job->out + (size_t)i0 * job->out_stride + (size_t)j0;
  const int n = job->nt - i0;
  write_table_row(out, _mm512_castsi512_si128(sums), columns, job->adds);
  if (n < 2) return;
  write_table_row(out + job->out_stride, _mm512_extracti32x4_epi32(sums, 1), columns, job->adds);
  if (n < 3) return;
  write_table_row(out + 2 * job->out_stride, _mm512_extracti32x4_epi32(sums, 2), columns,
                  job->adds);
  if (n < 4) return;
  write_table_row(out + 3 * job->out_stride, _mm512_extracti32x4_epi32(sums, 3), columns,
                  job->adds);
}

INLINE void set_tile_columns(const char *tile_of[TILE], const void *const *columns, int at, int n,
                             size_t offset) {
  for (int i = 0; i < TILE; i++) {
    tile_of[i] = (const char *)columns[smaller_of(at + i, n - 1)] + offset;
  }
}

INLINE void compute_all_tiles(const laci_maxsum_job *job, size_t size, step *add) {
  const char *t[TILE], *x[TILE];
  for (int i = 0; i < job->nt; i += TILE) {
    set_tile_columns(t, job->t, i, job->nt, job->first * size);
    for (int j = 0; j < job->nx; j += TILE) {
      set_tile_columns(x, job->x, j, job->nx, job->first * size);
      write_table_tile(job, i, j, compute_table_tile(t, x, job->rows * size, add));
    }
  }
}

void laci_maxsum_u8_avx512(const laci_maxsum_job *job) {
  compute_all_tiles(job, 1, accumulate_max_u8);
}

void laci_maxsum_i16_avx512(const laci_maxsum_job *job) {
  compute_all_tiles(job, 2, accumulate_max_i16);
}
