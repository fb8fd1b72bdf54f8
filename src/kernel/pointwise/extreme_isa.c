/* SPDX-License-Identifier: Apache-2.0
 * extreme.h for every instruction set: the build compiles this once for each (variants.h).
 *
 * Floats become integers in the same order (keys), of which the largest is found. A NaN has the
 * largest key of all. For the smallest float, all bits of keys are inverted. Loops are plain, so
 * that the compiler makes vectors of them. */
#include <string.h>

#include "kernel/pointwise/extreme.h"

#define INLINE static inline __attribute__((always_inline))

enum { COLUMNS = 64 }; /* number of columns that are reduced at a time */
static const int32_t infinity = 0x7F800000, quiet_nan = 0x7FC00000;

INLINE int32_t key_of_bits(int32_t bits, bool largest) {
  const int32_t ordered = bits ^ (bits >> 31 & INT32_MAX);
  return (bits & INT32_MAX) > infinity ? INT32_MAX : largest ? ordered : ~ordered;
}

INLINE float float_of_key(int32_t key, bool largest) {
  const int32_t ordered = largest ? key : ~key;
  const int32_t bits = key == INT32_MAX ? quiet_nan : ordered ^ (ordered >> 31 & INT32_MAX);
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* The largest key of n floats side by side. */
INLINE int32_t find_largest_key(const float *x, int64_t n, bool largest) {
  int32_t best = INT32_MIN;
  for (int64_t i = 0; i < n; i++) {
    int32_t bits;
    memcpy(&bits, x + i, sizeof bits);
    const int32_t key = key_of_bits(bits, largest);
    best = key > best ? key : best;
  }
  return best;
}

INLINE void reduce_columns(const float *x, int64_t n, int64_t inner, int columns, bool largest,
                           float *y) {
  int32_t best[COLUMNS];
  for (int k = 0; k < columns; k++) best[k] = INT32_MIN;
  for (int64_t row = 0; row < n; row++) {
    for (int k = 0; k < columns; k++) {
      int32_t bits;
      memcpy(&bits, x + row * inner + k, sizeof bits);
      const int32_t key = key_of_bits(bits, largest);
      best[k] = key > best[k] ? key : best[k];
    }
  }
  for (int k = 0; k < columns; k++) y[k] = float_of_key(best[k], largest);
}

INLINE void reduce(const float *x, int64_t n, int64_t inner, bool largest, float *y) {
  if (inner == 1) {
    *y = float_of_key(find_largest_key(x, n, largest), largest);
    return;
  }
  int64_t at = 0;
  for (; at + COLUMNS <= inner; at += COLUMNS)
    reduce_columns(x + at, n, inner, COLUMNS, largest, y + at);
  if (at < inner) reduce_columns(x + at, n, inner, (int)(inner - at), largest, y + at);
}

void LACI_VARIANT(laci_extreme)(const float *x, int64_t n, int64_t inner, bool largest, float *y) {
  if (largest) reduce(x, n, inner, true, y);
  else reduce(x, n, inner, false, y);
}
