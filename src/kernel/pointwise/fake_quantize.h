/* SPDX-License-Identifier: Apache-2.0
 * QuantizeLinear and DequantizeLinear by one scale and zero point, in floats: what a number becomes
 * that goes through integers,
 *
 *     y = clip(round(x / scale), low, high) * scale
 *
 * where low and high are how far the integers reach below and above the zero point. Quotient and
 * product are rounded as IEEE 754 says, halves go to even, and a zero is +0: the bits that the two
 * operators give, from every variant. A number is clipped before it becomes an integer, however
 * large it is. A NaN becomes the least integer, as in ONNX Runtime on x86. */
#ifndef LACI_KERNEL_POINTWISE_FAKE_QUANTIZE_H
#define LACI_KERNEL_POINTWISE_FAKE_QUANTIZE_H

#include <stdint.h>

#include "kernel/variants.h"

/** low <= 0 <= high, integers below 2^24. */
typedef struct laci_fake_quantized {
  float scale, low, high;
} laci_fake_quantized;

/** The one rule of all conversions to integers of 8 and 16 bits: from low to high, and of a NaN
 * low. The comparisons are false for a NaN, which so goes where a number below all bounds goes. */
static inline float laci_quantize_clip(float x, float low, float high) {
  const float above = x > low ? x : low;
  return above < high ? above : high;
}

/** [n], any alignment of floats; y may be x. Any thread. */
typedef void laci_fake_quantize(const laci_fake_quantized *q, const float *x, int64_t n, float *y);

#define LACI_FAKE_QUANTIZE_DECLARE(name, level) laci_fake_quantize laci_fake_quantize_##name;
LACI_KERNEL_VARIANTS(LACI_FAKE_QUANTIZE_DECLARE)
#undef LACI_FAKE_QUANTIZE_DECLARE

/** The variant by the level in force (cpu/cpu.h). */
laci_fake_quantize *laci_fake_quantize_now(void);

#endif
