/* SPDX-License-Identifier: Apache-2.0
 * What follows the sums of some rows and tiles (product.h), for every instruction set: functions
 * run over all of these at once, where they stand; then results go into y. */
#include <math.h>
#include <string.h>

#include "kernel/pointwise/function.h"
#include "kernel/sparse/product.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

enum { LANES = LACI_SPARSE_LANES, ALL = (1 << LANES) - 1 };

/* Lanes of a tile that are results; others are zero, or left alone. */
#if defined(__AVX512F__)
static inline void load(const float *from, uint64_t lanes, float *to) {
  _mm512_storeu_ps(to, _mm512_maskz_loadu_ps((__mmask16)lanes, from));
}
static inline void store(float *to, uint64_t lanes, const float *from) {
  _mm512_mask_storeu_ps(to, (__mmask16)lanes, _mm512_loadu_ps(from));
}
#elif defined(__AVX2__)
static inline __m256i mask_of(uint64_t lanes, int first) {
  const __m256i bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  const __m256i these = _mm256_set1_epi32((int)(lanes >> first & 0xFF));
  return _mm256_cmpeq_epi32(_mm256_and_si256(these, bits), bits);
}
static inline void load(const float *from, uint64_t lanes, float *to) {
  for (int at = 0; at < LANES; at += 8) {
    _mm256_storeu_ps(to + at, _mm256_maskload_ps(from + at, mask_of(lanes, at)));
  }
}
static inline void store(float *to, uint64_t lanes, const float *from) {
  for (int at = 0; at < LANES; at += 8) {
    _mm256_maskstore_ps(to + at, mask_of(lanes, at), _mm256_loadu_ps(from + at));
  }
}
#else
static inline void load(const float *from, uint64_t lanes, float *to) {
  for (int lane = 0; lane < LANES; lane++) to[lane] = lanes >> lane & 1 ? from[lane] : 0;
}
static inline void store(float *to, uint64_t lanes, const float *from) {
  for (int lane = 0; lane < LANES; lane++) {
    if (lanes >> lane & 1) to[lane] = from[lane];
  }
}
#endif

static void add_residual(const laci_sparse_operands *o, int64_t row_stride,
                         const laci_sparse_part *part, float *v) {
  float residual[LANES];
  for (int64_t t = part->tile_first; t < part->tile_last; t++) {
    const laci_sparse_tile *tile = &part->tiles[t];
    for (int64_t row = part->row_first; row < part->row_last; row++, v += LANES) {
      load(o->residual + tile->out + row * row_stride, tile->lanes, residual);
      for (int lane = 0; lane < LANES; lane++) v[lane] += residual[lane];
    }
  }
}

static void write_results(const laci_sparse_operands *o, int64_t row_stride,
                          const laci_sparse_part *part, const float *v) {
  for (int64_t t = part->tile_first; t < part->tile_last; t++) {
    const laci_sparse_tile *tile = &part->tiles[t];
    for (int64_t row = part->row_first; row < part->row_last; row++, v += LANES) {
      float *y = o->y + tile->out + row * row_stride;
      if (tile->lanes == ALL) memcpy(y, v, LANES * sizeof *v);
      else store(y, tile->lanes, v);
    }
  }
}

void LACI_VARIANT(laci_sparse_finish)(const laci_sparse_operands *o, int64_t row_stride,
                                      const laci_sparse_part *part, float *sums) {
  const int64_t n_tiles = part->tile_last - part->tile_first;
  const int64_t n = n_tiles * (part->row_last - part->row_first) * LANES;
  const laci_pointwise clip = {LACI_POINTWISE_CLIP, o->low, o->high};
  if (o->residual && !o->residual_last) add_residual(o, row_stride, part, sums);
  if (o->low > -INFINITY || o->high < INFINITY) {
    LACI_VARIANT(laci_pointwise_apply)(&clip, sums, n);
  }
  for (int at = 0; at < o->n_functions; at++) {
    LACI_VARIANT(laci_pointwise_apply)(&o->functions[at], sums, n);
  }
  if (o->residual && o->residual_last) add_residual(o, row_stride, part, sums);
  write_results(o, row_stride, part, sums);
}
