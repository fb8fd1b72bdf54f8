/* SPDX-License-Identifier: Apache-2.0
 * Converts floats of 16 bits and fewer: f16, bf16, the types of 8 bits (f8e4m3fn ...), f4e2m1, and
 * the powers of two of f8e8m0. Each type is a row of a table in narrow.c; all rounding to these
 * types is done here.
 *
 * The fast engine stores values of such a type as float between nodes, and only Cast, CastLike and
 * QuantizeLinear round. The plain engine rounds every result. See docs/explain/robustness.md. */
#ifndef LACI_TENSOR_NARROW_H
#define LACI_TENSOR_NARROW_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "lacuna/dtype.h"

/** Flags for rounding to a narrow type.
 *
 * LACI_ROUND_OVERFLOW: numbers that are too large become infinite, or NaN if the type has no
 * infinity. Without it, they become the largest number (in f16 and bf16 always infinite).
 * LACI_ROUND_DOWN, LACI_ROUND_NEAREST: f8e8m0 rounds down to a power of two, or to the nearest one;
 * without both flags, up. LACI_ROUND_NONE: laci_float_round returns x. */
enum { LACI_ROUND_OVERFLOW = 1, LACI_ROUND_DOWN = 2, LACI_ROUND_NEAREST = 4, LACI_ROUND_NONE = 8 };

/** The value of Cast's attribute `round_mode` that means no rounding. Only graphs that this library
 * makes have it. */
#define LACI_ROUND_MODE_NONE "none"

bool laci_dtype_is_narrow(lac_dtype dtype); /* Is it a float type of 16 bits or fewer? */

/** Returns the code of x in a narrow type, rounded once to the nearest, ties to even. f4e2m1 has no
 * NaN: NaN becomes -0, as in ml_dtypes. f8e8m0 has neither sign nor zero. */
uint16_t laci_narrow_bits(lac_dtype dtype, double x, unsigned rounding);

/** Returns the number whose code in a narrow type is `bits`. Bits above the width of the type are
 * ignored. */
double laci_narrow_value(lac_dtype dtype, uint16_t bits);

/** Returns x rounded to any float type; for f64, x itself. */
double laci_float_round(lac_dtype dtype, double x, unsigned rounding);

/** Rounds x, which an engine stores with more digits, to its element type. Infinities and NaN are
 * kept. */
static inline double laci_float_round_finite(lac_dtype dtype, double x) {
  return isfinite(x) ? laci_float_round(dtype, x, 0) : x;
}

/** Returns the bits of -0 of any float type; 0 if the type has no -0. */
uint64_t laci_negative_zero(lac_dtype dtype);

double laci_f16_to_double(uint16_t bits);

/** Returns the f16 nearest to x, as a float. Plain C that compilers can vectorize. */
static inline float laci_f16_nearest(float x) {
  uint32_t bits;
  float size = fabsf(x), y;
  memcpy(&bits, &size, sizeof bits);
  uint32_t even = (bits + 0xFFFu + (bits >> 13 & 1u)) & ~0x1FFFu;
  memcpy(&y, &even, sizeof y);
  if (size < 0x1p-14F) y = (size + 0.5F) - 0.5F; /* adding 0.5 rounds to multiples of 2^-24 */
  if (size >= 65520.0F) y = INFINITY;
  return copysignf(size == size ? y : size, x);
}

#endif
