/* SPDX-License-Identifier: Apache-2.0
 * table.h for every instruction set. The loops are plain; with AVX-512 VBMI, a permutation of the
 * table looks up 64 bytes at a time. */
#include "kernel/pointwise/table.h"

#if defined(LACI_ISA_AVX512VBMI2)

#include <immintrin.h>

enum { BYTES = 64 };

void LACI_VARIANT(laci_table_look_up_bytes)(const uint8_t bytes[LACI_N_BYTES], const uint8_t *x,
                                            int64_t n, uint8_t *y) {
  __m512i quarter[4];
  for (int at = 0; at < 4; at++) quarter[at] = _mm512_loadu_si512(bytes + at * BYTES);
  for (int64_t at = 0; at < n; at += BYTES) {
    const __mmask64 there = n - at >= BYTES ? ~0ULL : (1ULL << (n - at)) - 1;
    const __m512i index = _mm512_maskz_loadu_epi8(there, x + at);
    const __m512i below = _mm512_permutex2var_epi8(quarter[0], index, quarter[1]);
    const __m512i above = _mm512_permutex2var_epi8(quarter[2], index, quarter[3]);
    const __m512i found = _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), below, above);
    _mm512_mask_storeu_epi8(y + at, there, found);
  }
}

#else

#include <math.h>

enum { LANES = 16 };

void LACI_VARIANT(laci_table_look_up_floats)(const laci_byte_table *table, const float *x,
                                             int64_t n, float *y) {
  const float scale = table->from.scale, low = table->from.low, high = table->from.high;
  int64_t at = 0;
  for (; at + LANES <= n; at += LANES) {
    int32_t index[LANES];
    for (int lane = 0; lane < LANES; lane++) {
      index[lane] = (int32_t)(laci_quantize_clip(rintf(x[at + lane] / scale), low, high) - low);
    }
    for (int lane = 0; lane < LANES; lane++) y[at + lane] = table->values[index[lane]];
  }
  for (; at < n; at++) {
    y[at] = table->values[(int32_t)(laci_quantize_clip(rintf(x[at] / scale), low, high) - low)];
  }
}

void LACI_VARIANT(laci_table_look_up_bytes)(const uint8_t bytes[LACI_N_BYTES], const uint8_t *x,
                                            int64_t n, uint8_t *y) {
  for (int64_t at = 0; at < n; at++) y[at] = bytes[x[at]];
}

#endif
