/* SPDX-License-Identifier: Apache-2.0
 * What the integer types can hold. */
#ifndef LACI_TENSOR_INT_RANGE_H
#define LACI_TENSOR_INT_RANGE_H

#include <stdint.h>

#include "lacuna/dtype.h"

/** Smallest and largest element of an integer type; bool: 0 and 1. For u64, whose elements lie here
 * as int64, the largest is INT64_MAX. */
static inline void laci_int_range(lac_dtype dtype, int64_t *low, int64_t *high) {
  *low = 0;
  switch (dtype) {
    case LAC_DTYPE_BOOL: *high = 1; break;
    case LAC_DTYPE_U8: *high = UINT8_MAX; break;
    case LAC_DTYPE_I8: *low = INT8_MIN, *high = INT8_MAX; break;
    case LAC_DTYPE_U16: *high = UINT16_MAX; break;
    case LAC_DTYPE_I16: *low = INT16_MIN, *high = INT16_MAX; break;
    case LAC_DTYPE_U32: *high = UINT32_MAX; break;
    case LAC_DTYPE_I32: *low = INT32_MIN, *high = INT32_MAX; break;
    case LAC_DTYPE_U64: *high = INT64_MAX; break;
    default: *low = INT64_MIN, *high = INT64_MAX; break;
  }
}

#endif
