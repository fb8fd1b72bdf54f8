/* SPDX-License-Identifier: Apache-2.0
 * The text of relu_sum.h, for files that name their variant in RELU_SUM and are compiled for one
 * instruction set each. Loops are plain, so that the compiler makes vector code of them: it is told
 * that `to` is one of the others only element by element. */
#include <string.h>

#include "kernel/relu_sum.h"

#define INLINE static inline __attribute__((always_inline))

#if defined(__clang__)
#define EACH_BY_ITSELF _Pragma("clang loop vectorize(assume_safety)")
#else
#define EACH_BY_ITSELF _Pragma("GCC ivdep")
#endif

INLINE float float_of(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float x;
  memcpy(&x, &wide, sizeof x);
  return x;
}

/** To the nearest, ties to even. A sum that is NaN is a quiet one: its bits survive. */
INLINE uint16_t bf16_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (uint16_t)((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

static void sum_f32(const float *a, const float *b, const float *y, int64_t n, float *to) {
  EACH_BY_ITSELF
  for (int64_t i = 0; i < n; i++) {
    float sum = a[i] + b[i];
    to[i] = y[i] > 0 ? sum : 0;
  }
}

static void sum_bf16(const uint16_t *a, const uint16_t *b, const uint16_t *y, int64_t n,
                     uint16_t *to) {
  EACH_BY_ITSELF
  for (int64_t i = 0; i < n; i++) {
    uint16_t sum = bf16_of(float_of(a[i]) + float_of(b[i]));
    to[i] = (uint16_t)(y[i] - 1) < 0x7F80 ? sum : 0; /* no zero, no sign, no NaN */
  }
}

const laci_relu_sum RELU_SUM = {sum_f32, sum_bf16};
