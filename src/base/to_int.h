/* SPDX-License-Identifier: Apache-2.0
 * The only conversion from a floating-point number to an integer. C leaves open what becomes of a
 * number that the integer type does not hold, and processors differ. Here it becomes the nearest
 * that the type holds, and NaN becomes 0. What elements of a tensor become is in tensor/buf.h. */
#ifndef LACI_BASE_TO_INT_H
#define LACI_BASE_TO_INT_H

#include <stdint.h>

/** The integer part of x, held inside int64; NaN is 0. */
static inline int64_t laci_int_from_f(double x) {
  if (!(x == x)) return 0;
  if (x >= 0x1p63) return INT64_MAX;
  if (x < -0x1p63) return INT64_MIN;
  return (int64_t)x;
}

/** The integer part of x, held inside uint64; NaN is 0. */
static inline uint64_t laci_uint_from_f(double x) {
  if (!(x > 0)) return 0;
  return x >= 0x1p64 ? UINT64_MAX : (uint64_t)x;
}

/** The integer part of x, held inside [low, high]; NaN is what of these is nearest to 0. */
static inline int64_t laci_int_within(double x, int64_t low, int64_t high) {
  const int64_t all = laci_int_from_f(x);
  return all < low ? low : all > high ? high : all;
}

#endif
