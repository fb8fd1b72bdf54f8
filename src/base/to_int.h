/* SPDX-License-Identifier: Apache-2.0
 * The only conversions from a floating-point number to an integer. C does not define the result for
 * a number out of the integer type's range, and processors differ. These functions return the
 * nearest value of the type, and 0 for NaN. tensor/buf.h has the conversions of tensor elements. */
#ifndef LACI_BASE_TO_INT_H
#define LACI_BASE_TO_INT_H

#include <stdint.h>

/** Returns the integer part of x, clamped to the range of int64_t; 0 for NaN. */
static inline int64_t laci_clamp_to_int64(double x) {
  if (!(x == x)) return 0;
  if (x >= 0x1p63) return INT64_MAX;
  if (x < -0x1p63) return INT64_MIN;
  return (int64_t)x;
}

/** Returns the integer part of x, clamped to the range of uint64_t; 0 for NaN. */
static inline uint64_t laci_clamp_to_uint64(double x) {
  if (!(x > 0)) return 0;
  return x >= 0x1p64 ? UINT64_MAX : (uint64_t)x;
}

/** Returns the integer part of x, clamped to [low, high]; NaN counts as 0. */
static inline int64_t laci_clamp_to_range(double x, int64_t low, int64_t high) {
  const int64_t all = laci_clamp_to_int64(x);
  return all < low ? low : all > high ? high : all;
}

#endif
