/* SPDX-License-Identifier: Apache-2.0
 * Floats of 16 bits and fewer: f16, bf16, those of 8 bits (f8e4m3fn ...), f4e2m1 and the powers of
 * two of f8e8m0. Each is a row of a table in narrow.c; this is the one place that rounds to them.
 *
 * Engines that plan hold a value of such a type as a float between nodes, and Cast, CastLike and
 * QuantizeLinear alone round; the plain engine rounds every result. See docs/robustness.md. */
#ifndef LACI_TENSOR_NARROW_H
#define LACI_TENSOR_NARROW_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "lacuna/dtype.h"

/** How to round, a sum of: beyond the largest number is infinite, or NaN where a type has no
 * infinity (else it is the largest, of f16 and bf16 infinite always); and of f8e8m0 the next power
 * of two downwards, or the nearest (else upwards). NONE: laci_float_round gives x. */
enum { LACI_ROUND_OVERFLOW = 1, LACI_ROUND_DOWN = 2, LACI_ROUND_NEAREST = 4, LACI_ROUND_NONE = 8 };

/** What Cast's `round_mode` is where nothing is rounded, in graphs that are made here. */
#define LACI_ROUND_MODE_NONE "none"

bool laci_dtype_is_narrow(lac_dtype dtype); /* a float type of 16 bits or fewer */

/** The bits of x rounded once to the nearest, ties to even. f4e2m1 has no NaN: it becomes -0, as in
 * ml_dtypes. f8e8m0 has neither sign nor zero. */
uint16_t laci_narrow_bits(lac_dtype dtype, double x, unsigned rounding);

/** The number that bits of a narrow type are; bits above its width are not looked at. */
double laci_narrow_value(lac_dtype dtype, uint16_t bits);

/** x as an element of any float type: rounded to it, exact in f64. */
double laci_float_round(lac_dtype dtype, double x, unsigned rounding);

/** A number that an engine holds for an element of the type, as that element: rounded; what is not
 * finite stays. */
static inline double laci_float_held(lac_dtype dtype, double x) {
  return isfinite(x) ? laci_float_round(dtype, x, 0) : x;
}

/** The bits of -0 of any float type; 0 where a type has no other zero than that. */
uint64_t laci_negative_zero(lac_dtype dtype);

double laci_f16_value(uint16_t bits);

/** The f16 nearest to x, as a float. Plain C that compilers make vectors of. */
static inline float laci_f16_nearest(float x) {
  uint32_t bits;
  float size = fabsf(x), y;
  memcpy(&bits, &size, sizeof bits);
  uint32_t even = (bits + 0xFFFu + (bits >> 13 & 1u)) & ~0x1FFFu;
  memcpy(&y, &even, sizeof y);
  if (size < 0x1p-14F) y = (size + 0.5F) - 0.5F; /* fractions of 2^-24 */
  if (size >= 65520.0F) y = INFINITY;
  return copysignf(size == size ? y : size, x);
}

#endif
