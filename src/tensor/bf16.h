/* SPDX-License-Identifier: Apache-2.0
 * Converts single bf16 elements. A bf16 is the upper half of a float32. Plain C that compilers can
 * vectorize. */
#ifndef LACI_TENSOR_BF16_H
#define LACI_TENSOR_BF16_H

#include <stdint.h>
#include <string.h>

static inline float laci_bf16_value(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float x;
  memcpy(&x, &wide, sizeof x);
  return x;
}

/** Returns the bf16 nearest to x, ties to even. A NaN stays a NaN. */
static inline uint16_t laci_bf16_round(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return (uint16_t)((bits >> 16) | 0x40U);
  return (uint16_t)((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

#endif
