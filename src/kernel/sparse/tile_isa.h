/* SPDX-License-Identifier: Apache-2.0
 * Loads and stores the lanes of a tile (16 results, product.h), for every instruction set. Only
 * sources of kernels include this. */
#ifndef LACI_KERNEL_SPARSE_TILE_ISA_H
#define LACI_KERNEL_SPARSE_TILE_ISA_H

#include <stdbool.h>
#include <string.h>

#include "kernel/sparse/product.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

/* Are all lanes of a tile results? */
static inline bool laci_sparse_is_whole_tile(uint64_t lanes) {
  return (~lanes & LACI_SPARSE_ALL_LANES) == 0;
}

#if defined(__AVX512F__)
static inline void laci_sparse_load_tile(const float *from, uint64_t lanes, float *to) {
  _mm512_storeu_ps(to, _mm512_maskz_loadu_ps((__mmask16)lanes, from));
}
static inline void laci_sparse_store_tile(float *to, uint64_t lanes, const float *from) {
  const __m512 v = _mm512_maskz_loadu_ps((__mmask16)lanes, from);
  if (laci_sparse_is_whole_tile(lanes) || lanes & LACI_SPARSE_ZEROS_AROUND) _mm512_storeu_ps(to, v);
  else _mm512_mask_storeu_ps(to, (__mmask16)lanes, v);
}
#elif defined(__AVX2__)
static inline __m256i lane_mask(uint64_t lanes, int first) {
  const __m256i bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  const __m256i these = _mm256_set1_epi32((int)(lanes >> first & 0xFF));
  return _mm256_cmpeq_epi32(_mm256_and_si256(these, bits), bits);
}
static inline void laci_sparse_load_tile(const float *from, uint64_t lanes, float *to) {
  for (int at = 0; at < LACI_SPARSE_LANES; at += 8) {
    _mm256_storeu_ps(to + at, _mm256_maskload_ps(from + at, lane_mask(lanes, at)));
  }
}
/* Stores the lanes of a tile that are results. It avoids masked stores for whole tiles: they take
 * twelve cycles and more on some processors (Zen 3). */
static inline void laci_sparse_store_tile(float *to, uint64_t lanes, const float *from) {
  for (int at = 0; at < LACI_SPARSE_LANES; at += 8) {
    const __m256i mask = lane_mask(lanes, at);
    const __m256 v = _mm256_loadu_ps(from + at);
    if (laci_sparse_is_whole_tile(lanes)) {
      _mm256_storeu_ps(to + at, v);
    } else if (lanes & LACI_SPARSE_ZEROS_AROUND) {
      _mm256_storeu_ps(to + at, _mm256_and_ps(v, _mm256_castsi256_ps(mask)));
    } else {
      _mm256_maskstore_ps(to + at, mask, v);
    }
  }
}
#else
static inline void laci_sparse_load_tile(const float *from, uint64_t lanes, float *to) {
  for (int lane = 0; lane < LACI_SPARSE_LANES; lane++)
    to[lane] = lanes >> lane & 1 ? from[lane] : 0;
}
static inline void laci_sparse_store_tile(float *to, uint64_t lanes, const float *from) {
  if (laci_sparse_is_whole_tile(lanes)) {
    memcpy(to, from, LACI_SPARSE_LANES * sizeof *to);
  } else if (lanes & LACI_SPARSE_ZEROS_AROUND) {
    laci_sparse_load_tile(from, lanes, to);
  } else {
    for (int lane = 0; lane < LACI_SPARSE_LANES; lane++) {
      if (lanes >> lane & 1) to[lane] = from[lane];
    }
  }
}
#endif

#endif
