/* SPDX-License-Identifier: Apache-2.0
 * DynamicQuantizeLinear's integers minus the zero point, as floats:
 *
 *     scale = (max(x, 0) - min(x, 0)) / 255, zero = round(-min(x, 0) / scale)
 *     y     = clip(round(x / scale), -zero, 255 - zero)
 *
 * Quotients are rounded as IEEE 754 says, round() takes halves to even. So every variant gives the
 * same bits. A NaN counts for no extreme, and becomes the least integer. */
#ifndef LACI_KERNEL_POINTWISE_DYNAMIC_STEPS_H
#define LACI_KERNEL_POINTWISE_DYNAMIC_STEPS_H

#include <stdint.h>

#include "kernel/variants.h"

/** The least and the largest of some numbers and 0. */
typedef struct laci_extremes {
  float low, high; /* low <= 0 <= high */
} laci_extremes;

/** The scale and zero point that DynamicQuantizeLinear chooses. */
typedef struct laci_dynamic_scale {
  float scale, zero; /* size of one integer step, and the zero point; scale 0: all numbers are 0 */
} laci_dynamic_scale;

static inline laci_extremes laci_extremes_join(laci_extremes a, laci_extremes b) {
  return (laci_extremes){a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
}

laci_dynamic_scale laci_dynamic_scale_from_extremes(laci_extremes e);

/** Finds the extremes of n floats. Callable from any thread. */
typedef laci_extremes laci_find_extremes(const float *x, int64_t n);
/** Writes y, as defined above, of n floats x; y may be x. Callable from any thread. */
typedef void laci_quantize_dynamic_floats(laci_dynamic_scale to, const float *x, int64_t n,
                                          float *y);
/** Writes the bytes y + zero of n floats, at most 2^23. Returns their sum. Callable from any
 * thread. */
typedef int32_t laci_quantize_dynamic_bytes(laci_dynamic_scale to, const float *x, int64_t n,
                                            uint8_t *bytes);

#define LACI_DYNAMIC_STEPS_DECLARE(name, level)                     \
  laci_find_extremes laci_find_extremes_##name;                     \
  laci_quantize_dynamic_floats laci_quantize_dynamic_floats_##name; \
  laci_quantize_dynamic_bytes laci_quantize_dynamic_bytes_##name;
LACI_KERNEL_VARIANTS(LACI_DYNAMIC_STEPS_DECLARE)
#undef LACI_DYNAMIC_STEPS_DECLARE

/** Return the variants for the SIMD level in force (cpu/cpu.h). */
laci_find_extremes *laci_find_extremes_variant(void);
laci_quantize_dynamic_floats *laci_quantize_dynamic_floats_variant(void);
laci_quantize_dynamic_bytes *laci_quantize_dynamic_bytes_variant(void);

#endif
