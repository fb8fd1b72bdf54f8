/* SPDX-License-Identifier: Apache-2.0
 * quantize.h for every instruction set: the build compiles this once for each (variants.h). Loops
 * are plain, so that the compiler can vectorize them; without fused multiply-adds
 * (-ffp-contract=off) that does not change results. */
#include <string.h>

#include "kernel/search/quantize.h"

/* Elements of mapped files may be at any address. */
typedef uint16_t __attribute__((aligned(1), may_alias)) stored_16;
typedef uint32_t __attribute__((aligned(1), may_alias)) stored_32;

#define INLINE static inline __attribute__((always_inline))

INLINE float float_from_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

INLINE float magnitude_f32(uint32_t bits) { return float_from_bits(bits & 0x7FFFFFFFU); }

INLINE float magnitude_bf16(uint16_t bits) {
  return float_from_bits((uint32_t)(bits & 0x7FFF) << 16);
}

/* Returns |x| of an f16 as a float. The exponent's bias changes from 15 to 127. Below the least
 * normal exponent the fraction counts in units of 2^-24. The choice is by bits: compilers make a
 * branch of a choice between floats. */
INLINE float magnitude_f16(uint16_t bits) {
  int32_t size = bits & 0x7FFF;
  float tiny = (float)size * 0x1p-24F;
  uint32_t normal_bits = ((uint32_t)size << 13) + (112U << 23), tiny_bits;
  uint32_t is_tiny = 0U - (uint32_t)(size < 0x400);
  memcpy(&tiny_bits, &tiny, sizeof tiny_bits);
  return float_from_bits((tiny_bits & is_tiny) | (normal_bits & ~is_tiny));
}

INLINE int32_t quantize_magnitude(float size, float scale, float largest) {
  float scaled = size * scale;
  return (int32_t)((scaled < largest ? scaled : largest) + 0.5F);
}

#define DEFINE_LOOP(NAME, STORED, SIZE, TYPE)                                                     \
  static void NAME(const STORED *restrict w, size_t n, float scale, float largest,                \
                   TYPE *restrict out) {                                                          \
    for (size_t i = 0; i < n; i++) out[i] = (TYPE)quantize_magnitude(SIZE(w[i]), scale, largest); \
  }

DEFINE_LOOP(f32_to_u8, stored_32, magnitude_f32, uint8_t)
DEFINE_LOOP(f16_to_u8, stored_16, magnitude_f16, uint8_t)
DEFINE_LOOP(bf16_to_u8, stored_16, magnitude_bf16, uint8_t)
DEFINE_LOOP(f32_to_i16, stored_32, magnitude_f32, int16_t)
DEFINE_LOOP(f16_to_i16, stored_16, magnitude_f16, int16_t)
DEFINE_LOOP(bf16_to_i16, stored_16, magnitude_bf16, int16_t)

void LACI_VARIANT(laci_search_quantize)(const laci_search_quantizer *q, const void *elements,
                                        size_t n, void *out) {
  const float scale = q->scale, largest = q->largest;
  const bool to_u8 = q->number == LACI_U8;
  switch (q->dtype) {
    case LAC_DTYPE_F32:
      if (to_u8) f32_to_u8(elements, n, scale, largest, out);
      else f32_to_i16(elements, n, scale, largest, out);
      break;
    case LAC_DTYPE_F16:
      if (to_u8) f16_to_u8(elements, n, scale, largest, out);
      else f16_to_i16(elements, n, scale, largest, out);
      break;
    default:
      if (to_u8) bf16_to_u8(elements, n, scale, largest, out);
      else bf16_to_i16(elements, n, scale, largest, out);
      break;
  }
}
