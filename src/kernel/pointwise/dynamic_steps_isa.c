/* SPDX-License-Identifier: Apache-2.0
 * dynamic_steps.h for every instruction set. The loops are plain, so that the compiler vectorizes
 * them; extremes are kept in lanes, which no order changes. */
#include "kernel/pointwise/dynamic_steps.h"

#include <math.h>
#include <string.h>

#include "kernel/pointwise/fake_quantize.h"

#if defined(__clang__)
#define EACH_BY_ITSELF _Pragma("clang loop vectorize(assume_safety)")
#else
#define EACH_BY_ITSELF _Pragma("GCC ivdep")
#endif

enum { LANES = 32 };

laci_extremes LACI_VARIANT(laci_find_extremes)(const float *x, int64_t n) {
  float low[LANES] = {0}, high[LANES] = {0};
  laci_extremes all = {0, 0};
  int64_t at = 0;
  for (; at + LANES <= n; at += LANES) {
    for (int lane = 0; lane < LANES; lane++) {
      const float v = x[at + lane];
      low[lane] = v < low[lane] ? v : low[lane];
      high[lane] = v > high[lane] ? v : high[lane];
    }
  }
  for (; at < n; at++)
    all = (laci_extremes){x[at] < all.low ? x[at] : all.low, x[at] > all.high ? x[at] : all.high};
  for (int lane = 0; lane < LANES; lane++)
    all = laci_extremes_join(all, (laci_extremes){low[lane], high[lane]});
  return all;
}

void LACI_VARIANT(laci_quantize_dynamic_floats)(laci_dynamic_scale to, const float *x, int64_t n,
                                                float *y) {
  const float scale = to.scale, low = -to.zero, high = UINT8_MAX - to.zero;
  if (!(scale > 0)) {
    for (int64_t i = 0; i < n; i++) y[i] = 0;
    return;
  }
  EACH_BY_ITSELF
  for (int64_t i = 0; i < n; i++)
    y[i] = laci_quantize_clip(rintf(x[i] / scale), low, high) + 0.0F; /* -0 becomes +0 */
}

int32_t LACI_VARIANT(laci_quantize_dynamic_bytes)(laci_dynamic_scale to, const float *x, int64_t n,
                                                  uint8_t *bytes) {
  const float scale = to.scale, zero = to.zero, low = -zero, high = UINT8_MAX - zero;
  int32_t sum = 0;
  if (!(scale > 0)) {
    memset(bytes, 0, (size_t)n);
    return 0;
  }
  EACH_BY_ITSELF
  for (int64_t i = 0; i < n; i++) {
    const int32_t byte = (int32_t)(laci_quantize_clip(rintf(x[i] / scale), low, high) + zero);
    bytes[i] = (uint8_t)byte;
    sum += byte;
  }
  return sum;
}
