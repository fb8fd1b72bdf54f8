/* SPDX-License-Identifier: Apache-2.0
 * maxsum.h for AVX2. 16-bit words take a maximum, pmaddwd with ones, and an addition. Bytes need no
 * maximum:
 *
 *     sum max(t, x) = (sum t + sum x + sum |t - x|) / 2,
 *
 * and psadbw computes and sums |t - x| in one instruction; sums of single columns are few compared
 * with sums of pairs of columns. A 2 x 4 tile keeps its eight sums in registers. Tiles at the edge
 * repeat their last column, and the additional results are dropped. */
#include "kernel/search/maxsum.h"

#include <immintrin.h>

enum { TILE_T = 2, TILE_X = 4, COLUMNS_AT_ONCE = 128 };

#define INLINE static inline __attribute__((always_inline))

/* Prevents gcc 12 from moving the sums between registers inside the loop. */
INLINE __m256i keep_in_registers(__m256i sum) {
  __asm__("" : "+x"(sum));
  return sum;
}

INLINE __m256i accumulate_max_u8(__m256i sum, __m256i a, __m256i b) {
  return keep_in_registers(_mm256_add_epi32(sum, _mm256_sad_epu8(a, b)));
}

INLINE __m256i accumulate_max_i16(__m256i sum, __m256i a, __m256i b) {
  const __m256i ones = _mm256_set1_epi16(1);
  return keep_in_registers(_mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_max_epi16(a, b), ones)));
}

INLINE __m256i load(const char *at) {
  return _mm256_loadu_si256((const __m256i *)(const void *)at);
}

/* Returns the sums of the lanes of four registers, in order. */
INLINE __m128i sums_of_lanes(const __m256i v[TILE_X]) {
  __m256i s = _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
  return _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
}

INLINE int smaller_of(int a, int b) { return a < b ? a : b; }

typedef __m256i step(__m256i sum, __m256i a, __m256i b);

/* Computes one tile, two columns by four, in chunks of 32 bytes. `add` is a constant where this is
 * inlined. */
INLINE void compute_table_tile(const char *const t[TILE_T], const char *const x[TILE_X],
                               size_t bytes, step *add, __m128i out[TILE_T]) {
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
  for (int i = 0; i < TILE_T; i++) out[i] = sums_of_lanes(sum[i]);
}

INLINE void set_tile_columns(const char **tile_of, int capacity, const void *const *columns, int at,
                             int n, size_t offset) {
  for (int i = 0; i < capacity; i++) {
    tile_of[i] = (const char *)columns[smaller_of(at + i, n - 1)] + offset;
  }
}

INLINE void write_table_row(int32_t *out, int n, __m128i sums, bool adds) {
  __m128i wanted = _mm_cmpgt_epi32(_mm_set1_epi32(n), _mm_setr_epi32(0, 1, 2, 3));
  if (adds) sums = _mm_add_epi32(sums, _mm_maskload_epi32(out, wanted));
  _mm_maskstore_epi32(out, wanted, sums);
}

/* Computes the sums of n single columns of bytes; `sums` has room for whole tiles. */
static void sum_single_columns(const laci_maxsum_job *job, const void *const *columns, int n,
                               int32_t *sums) {
  const char *x[TILE_X];
  for (int j = 0; j < n; j += TILE_X) {
    __m256i sum[TILE_X] = {0};
    set_tile_columns(x, TILE_X, columns, j, n, job->first);
    for (size_t at = 0; at < job->rows; at += 32) {
      for (int k = 0; k < TILE_X; k++)
        sum[k] = accumulate_max_u8(sum[k], load(x[k] + at), (__m256i){0});
    }
    _mm_storeu_si128((__m128i *)(void *)(sums + j), sums_of_lanes(sum));
  }
}

/* Computes columns [j0, j0 + n) of the table, n <= COLUMNS_AT_ONCE. */
INLINE void compute_columns_of_bytes(const laci_maxsum_job *job, int j0, int n) {
  const char *t[TILE_T], *x[TILE_X];
  int32_t x_sums[COLUMNS_AT_ONCE], t_sums[TILE_X];
  sum_single_columns(job, job->x + j0, n, x_sums);
  for (int i = 0; i < job->nt; i += TILE_T) {
    const int nt = smaller_of(TILE_T, job->nt - i);
    sum_single_columns(job, job->t + i, nt, t_sums);
    set_tile_columns(t, TILE_T, job->t, i, job->nt, job->first);
    for (int j = 0; j < n; j += TILE_X) {
      __m128i sums[TILE_T];
      set_tile_columns(x, TILE_X, job->x + j0, j, n, job->first);
      compute_table_tile(t, x, job->rows, accumulate_max_u8, sums);
      __m128i x_sum = _mm_loadu_si128((const __m128i *)(const void *)(x_sums + j));
      int32_t *out = job->out + (size_t)i * job->out_stride + (size_t)(j0 + j);
      for (int k = 0; k < nt; k++) {
        __m128i both = _mm_add_epi32(_mm_add_epi32(sums[k], x_sum), _mm_set1_epi32(t_sums[k]));
        write_table_row(out + (size_t)k * job->out_stride, n - j, _mm_srli_epi32(both, 1),
                        job->adds);
      }
    }
  }
}

void laci_maxsum_u8_avx2(const laci_maxsum_job *job) {
  for (int j = 0; j < job->nx; j += COLUMNS_AT_ONCE) {
    compute_columns_of_bytes(job, j, smaller_of(COLUMNS_AT_ONCE, job->nx - j));
  }
}

void laci_maxsum_i16_avx2(const laci_maxsum_job *job) {
  const char *t[TILE_T], *x[TILE_X];
  for (int i = 0; i < job->nt; i += TILE_T) {
    set_tile_columns(t, TILE_T, job->t, i, job->nt, 2 * job->first);
    for (int j = 0; j < job->nx; j += TILE_X) {
      __m128i sums[TILE_T];
      set_tile_columns(x, TILE_X, job->x, j, job->nx, 2 * job->first);
      compute_table_tile(t, x, 2 * job->rows, accumulate_max_i16, sums);
      int32_t *out = job->out + (size_t)i * job->out_stride + (size_t)j;
      for (int k = 0; k < smaller_of(TILE_T, job->nt - i); k++) {
        write_table_row(out + (size_t)k * job->out_stride, job->nx - j, sums[k], job->adds);
      }
    }
  }
}
