/* SPDX-License-Identifier: Apache-2.0
 * Integers as elements of a tensor: the range of each type, how elements compare, and how numbers
 * outside of the range are converted. */
#include <math.h>

#include "base/to_int.h"
#include "tensor/buf.h"

void laci_int_get_range(lac_dtype dtype, int64_t *low, int64_t *high) {
  *low = 0;
  switch (dtype) {
    case LAC_DTYPE_BOOL: *high = 1; break;
    case LAC_DTYPE_U2: *high = 3; break;
    case LAC_DTYPE_I2: *low = -2, *high = 1; break;
    case LAC_DTYPE_U4: *high = 15; break;
    case LAC_DTYPE_I4: *low = -8, *high = 7; break;
    case LAC_DTYPE_U8: *high = UINT8_MAX; break;
    case LAC_DTYPE_I8: *low = INT8_MIN, *high = INT8_MAX; break;
    case LAC_DTYPE_U16: *high = UINT16_MAX; break;
    case LAC_DTYPE_I16: *low = INT16_MIN, *high = INT16_MAX; break;
    case LAC_DTYPE_U32: *high = UINT32_MAX; break;
    case LAC_DTYPE_I32: *low = INT32_MIN, *high = INT32_MAX; break;
    case LAC_DTYPE_U64: *high = -1; break;
    default: *low = INT64_MIN, *high = INT64_MAX; break;
  }
}

int64_t laci_int_wrap(lac_dtype dtype, int64_t x) {
  switch (dtype) {
    case LAC_DTYPE_BOOL: return x != 0;
    case LAC_DTYPE_U2: return x & 3;
    case LAC_DTYPE_I2: return ((x & 3) ^ 2) - 2;
    case LAC_DTYPE_U4: return x & 15;
    case LAC_DTYPE_I4: return ((x & 15) ^ 8) - 8;
    case LAC_DTYPE_U8: return (uint8_t)x;
    case LAC_DTYPE_I8: return (int8_t)(uint8_t)x;
    case LAC_DTYPE_U16: return (uint16_t)x;
    case LAC_DTYPE_I16: return (int16_t)(uint16_t)x;
    case LAC_DTYPE_U32: return (uint32_t)x;
    case LAC_DTYPE_I32: return (int32_t)(uint32_t)x;
    default: return x;
  }
}

laci_wide laci_int_to_wide(lac_dtype dtype, int64_t element) {
  return dtype == LAC_DTYPE_U64 ? (laci_wide)(uint64_t)element : (laci_wide)element;
}

int64_t laci_int_from_wide(lac_dtype dtype, laci_wide x) {
  int64_t low, high;
  laci_int_get_range(dtype, &low, &high);
  if (x < laci_int_to_wide(dtype, low)) return low;
  return x > laci_int_to_wide(dtype, high) ? high : (int64_t)x;
}

double laci_int_to_double(lac_dtype dtype, int64_t element) {
  return dtype == LAC_DTYPE_U64 ? (double)(uint64_t)element : (double)element;
}

int laci_int_compare(lac_dtype dtype, int64_t a, int64_t b) {
  if (dtype == LAC_DTYPE_U64) return ((uint64_t)a > (uint64_t)b) - ((uint64_t)a < (uint64_t)b);
  return (a > b) - (a < b);
}

int64_t laci_int_quantize(lac_dtype dtype, float quotient, double zero) {
  int64_t low, high;
  laci_int_get_range(dtype, &low, &high);
  const double y = rintf(quotient) + zero;
  return laci_clamp_to_int64(!(y > (double)low) ? (double)low
                             : y < (double)high ? y
                                                : (double)high);
}

int64_t laci_int_truncate(lac_dtype dtype, double x) {
  if (dtype == LAC_DTYPE_U64) return (int64_t)laci_clamp_to_uint64(x);
  int64_t low, high;
  laci_int_get_range(dtype, &low, &high);
  return laci_clamp_to_range(x, low, high);
}

int64_t laci_int_cast(lac_dtype dtype, double x) {
  if (dtype == LAC_DTYPE_BOOL) return x != 0;
  const double reach = dtype == LAC_DTYPE_U64 ? 0x1p63 : 0x1p31;
  const int64_t nearest = laci_int_truncate(dtype, x);
  const bool narrow = dtype != LAC_DTYPE_I32 && dtype != LAC_DTYPE_I64;
  if (narrow && x > -reach - 1 && x < reach) return laci_int_wrap(dtype, (int64_t)x);
  return nearest;
}
