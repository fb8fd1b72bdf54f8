/* SPDX-License-Identifier: Apache-2.0
 * fake_quantize.h for every instruction set. The loop is plain, so that the compiler vectorizes
 * it. */
#include "kernel/pointwise/fake_quantize.h"

#include <math.h>

#if defined(__clang__)
#define EACH_BY_ITSELF _Pragma("clang loop vectorize(assume_safety)")
#else
#define EACH_BY_ITSELF _Pragma("GCC ivdep")
#endif

void LACI_VARIANT(laci_fake_quantize)(const laci_fake_quantized *q, const float *x, int64_t n,
                                      float *y) {
  const float scale = q->scale, low = q->low, high = q->high;
  EACH_BY_ITSELF
  for (int64_t i = 0; i < n; i++) {
    y[i] = laci_quantize_clip(rintf(x[i] / scale), low, high) * scale + 0.0F; /* -0 becomes +0 */
  }
}
