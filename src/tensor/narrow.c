/* SPDX-License-Identifier: Apache-2.0
 * Rounds numbers to the small float types of narrow.h, and converts them back. The code of a number
 * is its bits without the sign:
 *
 *     (exponent - smallest + 1) << bits | fraction,  subnormal numbers without the 1,
 *
 * So codes are in the order of the numbers, and a fraction that is rounded up to 2 carries into the
 * exponent by itself. */
#include "tensor/narrow.h"

#include "tensor/bf16.h"

/** A float format: a row of the table. If it has no infinity, `infinite` is the code of its NaN. */
typedef struct format {
  /* bits: number of bits of the fraction. smallest: exponent of the smallest normal number */
  int bits, smallest;
  uint16_t largest, infinite, nan; /* codes of the largest number, of infinity, and of NaN */
  uint16_t sign;
  bool saturates; /* true: numbers that are too large become the largest number, unless the caller
                     asks for LACI_ROUND_OVERFLOW */
  bool one_zero;  /* true: there is no -0, and its code is NaN */
} format;

static const format formats[LAC_DTYPE_COUNT] = {
    [LAC_DTYPE_F16] = {10, -14, 0x7BFF, 0x7C00, 0x7E00, 0x8000, false, false},
    [LAC_DTYPE_BF16] = {7, -126, 0x7F7F, 0x7F80, 0x7FC0, 0x8000, false, false},
    [LAC_DTYPE_F8E4M3FN] = {3, -6, 0x7E, 0x7F, 0x7F, 0x80, true, false},
    [LAC_DTYPE_F8E4M3FNUZ] = {3, -7, 0x7F, 0x80, 0x80, 0x80, true, true},
    [LAC_DTYPE_F8E5M2] = {2, -14, 0x7B, 0x7C, 0x7F, 0x80, true, false},
    [LAC_DTYPE_F8E5M2FNUZ] = {2, -15, 0x7F, 0x80, 0x80, 0x80, true, true},
    [LAC_DTYPE_F4E2M1] = {1, 0, 7, 7, 8, 8, true, false},
};

enum { E8M0_BIAS = 127, E8M0_LARGEST = 254, E8M0_NAN = 255 };

bool laci_dtype_is_narrow(lac_dtype dtype) {
  return (unsigned)dtype < LAC_DTYPE_COUNT && (formats[dtype].sign || dtype == LAC_DTYPE_F8E8M0);
}

/* Returns the code of x in the type f8e8m0, where a code means 2^(code - 127). */
static uint16_t round_to_e8m0(double x, unsigned rounding) {
  double size = fabs(x);
  int exponent = -E8M0_BIAS;
  if (isnan(x)) return E8M0_NAN;
  if (isinf(x)) return rounding & LACI_ROUND_OVERFLOW ? E8M0_NAN : E8M0_LARGEST;
  if (size > 0) {
    exponent = ilogb(size);
    double part = ldexp(size, -exponent); /* fraction in [1, 2) */
    if (rounding & LACI_ROUND_NEAREST) exponent += part >= 1.5;
    else if (!(rounding & LACI_ROUND_DOWN)) exponent += part > 1;
  }
  int code = exponent + E8M0_BIAS;
  bool overflows = code < 0 || code > E8M0_LARGEST || size == 0;
  if (overflows && (rounding & LACI_ROUND_OVERFLOW)) return E8M0_NAN;
  return (uint16_t)(code < 0 ? 0 : code > E8M0_LARGEST ? E8M0_LARGEST : code);
}

uint16_t laci_narrow_bits(lac_dtype dtype, double x, unsigned rounding) {
  if (dtype == LAC_DTYPE_F8E8M0) return round_to_e8m0(x, rounding);
  if (!laci_dtype_is_narrow(dtype)) return 0;
  const format *f = &formats[dtype];
  const bool saturates = f->saturates && !(rounding & LACI_ROUND_OVERFLOW);
  const unsigned sign = signbit(x) ? f->sign : 0, infinite = saturates ? f->largest : f->infinite;
  double size = fabs(x), code = infinite;
  if (isnan(x)) return f->nan;
  if (size == 0) return (uint16_t)(f->one_zero ? 0 : sign);
  if (!isinf(x)) {
    int exponent = ilogb(size) > f->smallest ? ilogb(size) : f->smallest;
    code = nearbyint(ldexp(size, f->bits - exponent)) + ldexp(exponent - f->smallest, f->bits);
  }
  unsigned whole = code <= f->largest ? (unsigned)code : infinite;
  if (f->one_zero && whole == 0) return 0;
  return (uint16_t)(whole | sign);
}

double laci_f16_to_double(uint16_t bits) {
  const unsigned exponent = bits >> 10 & 31, fraction = bits & 1023;
  double magnitude = exponent == 0 ? (double)fraction * 0x1p-24 : fraction ? NAN : INFINITY;
  /* a normal number: its exponent and fraction are moved to their fields in a double */
  if (exponent != 0 && exponent != 31) {
    const uint64_t wide = (uint64_t)(exponent - 15 + 1023) << 52 | (uint64_t)fraction << 42;
    memcpy(&magnitude, &wide, sizeof magnitude);
  }
  return bits & 0x8000 ? -magnitude : magnitude;
}

double laci_narrow_value(lac_dtype dtype, uint16_t bits) {
  if (dtype == LAC_DTYPE_F16) return laci_f16_to_double(bits);
  if (dtype == LAC_DTYPE_BF16) return (double)laci_bf16_value(bits);
  if (dtype == LAC_DTYPE_F8E8M0)
    return (bits & 0xFF) == E8M0_NAN ? NAN : ldexp(1, (bits & 0xFF) - E8M0_BIAS);
  if (!laci_dtype_is_narrow(dtype)) return 0;
  const format *f = &formats[dtype];
  const unsigned code = bits & (f->sign - 1u), field = code >> f->bits;
  const unsigned fraction = code & ((1u << f->bits) - 1u), is_negative = bits & f->sign;
  if (f->one_zero && is_negative && code == 0) return NAN;
  double size = field == 0
                    ? ldexp(fraction, f->smallest - f->bits)
                    : ldexp(fraction + (1u << f->bits), (int)field - 1 + f->smallest - f->bits);
  if (code > f->largest) size = code == f->infinite && f->infinite != f->nan ? INFINITY : NAN;
  return is_negative ? -size : size;
}

uint64_t laci_negative_zero(lac_dtype dtype) {
  if (dtype == LAC_DTYPE_F32) return UINT64_C(1) << 31;
  if (dtype == LAC_DTYPE_F64) return UINT64_C(1) << 63;
  if (!laci_dtype_is_narrow(dtype) || formats[dtype].one_zero) return 0;
  return formats[dtype].sign;
}

double laci_float_round(lac_dtype dtype, double x, unsigned rounding) {
  if (rounding & LACI_ROUND_NONE) return x;
  if (dtype == LAC_DTYPE_F32) return (double)(float)x;
  if (!laci_dtype_is_narrow(dtype)) return x;
  return laci_narrow_value(dtype, laci_narrow_bits(dtype, x, rounding));
}
