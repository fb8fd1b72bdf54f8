/* SPDX-License-Identifier: Apache-2.0
 * QuantizeLinear and DequantizeLinear by one scale and zero point, in floats: what a number becomes
 * that goes through integers,
 *
 *     y = clip(round(x / scale), low, high) * scale
 *
 * where low and high are how far the integers reach below and above the zero point. Quotient and
 * product are rounded as IEEE 754 says, halves go to even, and a zero is +0: the bits that the two
 * operators give, from every variant. A NaN becomes the integer 0, as there. */
#ifndef LACI_KERNEL_POINTWISE_FAKE_QUANTISE_H
#define LACI_KERNEL_POINTWISE_FAKE_QUANTISE_H

#include <stdint.h>

#include "kernel/variants.h"

/** low <= 0 <= high, whole numbers below 2^24; of_nan: the zero point's negative. */
typedef struct laci_fake_quantised {
  float scale, low, high, of_nan;
} laci_fake_quantised;

/** [n], any alignment of floats; y may be x. Any thread. */
typedef void laci_fake_quantise(const laci_fake_quantised *q, const float *x, int64_t n, float *y);

#define LACI_FAKE_QUANTISE_DECLARE(name, level) laci_fake_quantise laci_fake_quantise_##name;
LACI_KERNEL_VARIANTS(LACI_FAKE_QUANTISE_DECLARE)
#undef LACI_FAKE_QUANTISE_DECLARE

/** The variant by the level in force (cpu/cpu.h). */
laci_fake_quantise *laci_fake_quantise_now(void);

#endif
