/* SPDX-License-Identifier: Apache-2.0
 * QuantizeLinear and DequantizeLinear with one scale and zero point, computed in floats. It is the
 * value of a number after it was quantized and dequantized:
 *
 *     y = clip(round(x / scale), low, high) * scale
 *
 * where low and high are the least and the largest integer, minus the zero point. Quotient and
 * product are rounded as IEEE 754 says, round() takes halves to even, and a zero is +0. So every
 * variant gives the same bits as the two operators. A number is clipped before it becomes an
 * integer, however large it is. A NaN becomes the least integer, as in ONNX Runtime on x86. */
#ifndef LACI_KERNEL_POINTWISE_FAKE_QUANTIZE_H
#define LACI_KERNEL_POINTWISE_FAKE_QUANTIZE_H

#include <math.h>
#include <stdint.h>

#include "kernel/variants.h"

/** low <= 0 <= high, integers below 2^24. */
typedef struct laci_fake_quantized {
  float scale, low, high;
} laci_fake_quantized;

/** Clips x to [low, high]; a NaN becomes low. All conversions to integers of 8 and 16 bits use this
 * rule. The comparisons are false for a NaN, so it is treated as a number below all bounds. */
static inline float laci_quantize_clip(float x, float low, float high) {
  const float above = x > low ? x : low;
  return above < high ? above : high;
}

/** Returns the integer that x becomes, as int8 layers and tables store it: its distance from `low`,
 * which must be at most 255. */
static inline uint8_t laci_quantize_to_byte(const laci_fake_quantized *q, float x) {
  return (uint8_t)(laci_quantize_clip(rintf(x / q->scale), q->low, q->high) - q->low);
}

/** Fake-quantizes n floats of x into y, which may be x. Needs only the alignment of floats.
 * Callable from any thread. */
typedef void laci_fake_quantize(const laci_fake_quantized *q, const float *x, int64_t n, float *y);

#define LACI_FAKE_QUANTIZE_DECLARE(name, level) laci_fake_quantize laci_fake_quantize_##name;
LACI_KERNEL_VARIANTS(LACI_FAKE_QUANTIZE_DECLARE)
#undef LACI_FAKE_QUANTIZE_DECLARE

/** Returns the variant for the SIMD level in force (cpu/cpu.h). */
laci_fake_quantize *laci_fake_quantize_variant(void);

#endif
