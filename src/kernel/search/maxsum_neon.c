/* SPDX-License-Identifier: Apache-2.0
 * maxsum.h for NEON, which every 64-bit ARM has: a maximum, then a pairwise addition into lanes of
 * twice the width. Bytes are added in 16 bits, each step at most twice 255, so after 128 steps the
 * lanes are added to other sums. Words are added in 32 bits, which do not overflow below the limit
 * of maxsum.h. A 4 x 4 tile keeps sixteen of the 32 registers. Tiles at the edge repeat their last
 * column, and the additional results are dropped. */
#include "kernel/search/maxsum.h"

#include <arm_neon.h>

enum { TILE = 4, STEP_BYTES = 16, MOST_BYTES = 128 * STEP_BYTES };

#define INLINE static inline __attribute__((always_inline))

INLINE int smaller_of(int a, int b) { return a < b ? a : b; }

/* Adds the tile's sums over at most MOST_BYTES of every column. */
INLINE void add_tile_sums_u8(const uint8_t *const t[TILE], const uint8_t *const x[TILE],
                             size_t bytes, int32_t out[TILE][TILE]) {
  uint16x8_t sum[TILE][TILE];
  for (int i = 0; i < TILE; i++) {
    for (int j = 0; j < TILE; j++) sum[i][j] = vdupq_n_u16(0);
  }
  for (size_t at = 0; at < bytes; at += STEP_BYTES) {
    uint8x16_t a[TILE];
    for (int i = 0; i < TILE; i++) a[i] = vld1q_u8(t[i] + at);
    for (int j = 0; j < TILE; j++) {
      uint8x16_t b = vld1q_u8(x[j] + at);
      for (int i = 0; i < TILE; i++) sum[i][j] = vpadalq_u8(sum[i][j], vmaxq_u8(a[i], b));
    }
  }
  for (int i = 0; i < TILE; i++) {
    for (int j = 0; j < TILE; j++) out[i][j] += (int32_t)vaddlvq_u16(sum[i][j]);
  }
}

INLINE void compute_table_tile_u8(const uint8_t *const t[TILE], const uint8_t *const x[TILE],
                                  size_t bytes, int32_t out[TILE][TILE]) {
  for (size_t at = 0; at < bytes; at += MOST_BYTES) {
    const uint8_t *a[TILE], *b[TILE];
    for (int i = 0; i < TILE; i++) {
      a[i] = t[i] + at;
      b[i] = x[i] + at;
    }
    add_tile_sums_u8(a, b, bytes - at < MOST_BYTES ? bytes - at : MOST_BYTES, out);
  }
}

INLINE void compute_table_tile_i16(const uint8_t *const t[TILE], const uint8_t *const x[TILE],
                                   size_t bytes, int32_t out[TILE][TILE]) {
  int32x4_t sum[TILE][TILE];
  for (int i = 0; i < TILE; i++) {
    for (int j = 0; j < TILE; j++) sum[i][j] = vdupq_n_s32(0);
  }
  for (size_t at = 0; at < bytes; at += STEP_BYTES) {
    int16x8_t a[TILE];
    for (int i = 0; i < TILE; i++) a[i] = vreinterpretq_s16_u8(vld1q_u8(t[i] + at));
    for (int j = 0; j < TILE; j++) {
      int16x8_t b = vreinterpretq_s16_u8(vld1q_u8(x[j] + at));
      for (int i = 0; i < TILE; i++) sum[i][j] = vpadalq_s16(sum[i][j], vmaxq_s16(a[i], b));
    }
  }
  for (int i = 0; i < TILE; i++) {
    for (int j = 0; j < TILE; j++) out[i][j] += vaddvq_s32(sum[i][j]);
  }
}

typedef void sum_tile_function(const uint8_t *const t[TILE], const uint8_t *const x[TILE],
                               size_t bytes, int32_t out[TILE][TILE]);

INLINE void set_tile_columns(const uint8_t *tile_of[TILE], const void *const *columns, int at,
                             int n, size_t offset) {
  for (int i = 0; i < TILE; i++) {
    tile_of[i] = (const uint8_t *)columns[smaller_of(at + i, n - 1)] + offset;
  }
}

INLINE void compute_all_tiles(const laci_maxsum_job *job, size_t element_bytes,
                              sum_tile_function *sum_tile) {
  const uint8_t *t[TILE], *x[TILE];
  for (int i0 = 0; i0 < job->nt; i0 += TILE) {
    set_tile_columns(t, job->t, i0, job->nt, job->first * element_bytes);
    for (int j0 = 0; j0 < job->nx; j0 += TILE) {
      int32_t sums[TILE][TILE] = {{0}};
      set_tile_columns(x, job->x, j0, job->nx, job->first * element_bytes);
      sum_tile(t, x, job->rows * element_bytes, sums);
      for (int i = 0; i < smaller_of(TILE, job->nt - i0); i++) {
        int32_t *out = job->out + (size_t)(i0 + i) * job->out_stride + (size_t)j0;
        for (int j = 0; j < smaller_of(TILE, job->nx - j0); j++) {
          out[j] = job->adds ? out[j] + sums[i][j] : sums[i][j];
        }
      }
    }
  }
}

void laci_maxsum_u8_neon(const laci_maxsum_job *job) {
  compute_all_tiles(job, 1, compute_table_tile_u8);
}

void laci_maxsum_i16_neon(const laci_maxsum_job *job) {
  compute_all_tiles(job, 2, compute_table_tile_i16);
}
