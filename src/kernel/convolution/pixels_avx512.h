/* SPDX-License-Identifier: Apache-2.0
 * Loads pixels of 16 bf16 channels into registers. For source files that are compiled for AVX-512
 * with BW. */
#ifndef LACI_KERNEL_CONVOLUTION_PIXELS_AVX512_H
#define LACI_KERNEL_CONVOLUTION_PIXELS_AVX512_H

#if defined(__AVX512BW__)
#include <immintrin.h>
#include <stdint.h>

enum { LACI_PIXEL = 16 /* channels of a pixel */ };

/** Returns pixel `at` of a row of `width` pixels, or zeros where `at` is outside [0, width). */
static inline __m256i laci_pixel_or_zeros(const uint16_t *row, int64_t width, int64_t at) {
  if (at < 0 || at >= width) return _mm256_setzero_si256();
  return _mm256_loadu_si256((const void *)(row + at * LACI_PIXEL));
}

/** Returns pixel `at` as laci_pixel_or_zeros does, converted to float32. */
static inline __m512 laci_pixel_floats(const uint16_t *row, int64_t width, int64_t at) {
  __m512i wide = _mm512_cvtepu16_epi32(laci_pixel_or_zeros(row, width, at));
  return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

/** Reorders [2 pixels][channel] to [channel][2 pixels], the operand of instructions that multiply
 * bf16 pairs. */
static inline __m512i laci_interleave_pixels(__m512i two) {
  const __m512i places =
      _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                       21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(places, two);
}

#endif
#endif
