/* SPDX-License-Identifier: Apache-2.0
 * relu_sum.h for every instruction set: the build compiles this once for each (variants.h). Loops
 * are plain, so that the compiler vectorizes them. It is told that element i of `to` overlaps only
 * element i of the other arrays. */
#include "kernel/pointwise/relu_sum.h"
#include "tensor/bf16.h"

#if defined(__clang__)
#define EACH_BY_ITSELF _Pragma("clang loop vectorize(assume_safety)")
#else
#define EACH_BY_ITSELF _Pragma("GCC ivdep")
#endif

static void sum_gradients_f32(const float *a, const float *b, const float *y, int64_t n,
                              float *to) {
  EACH_BY_ITSELF
  for (int64_t i = 0; i < n; i++) {
    float sum = a[i] + b[i];
    to[i] = y[i] > 0 ? sum : 0;
  }
}

static void sum_gradients_bf16(const uint16_t *a, const uint16_t *b, const uint16_t *y, int64_t n,
                               uint16_t *to) {
  EACH_BY_ITSELF
  for (int64_t i = 0; i < n; i++) {
    uint16_t sum = laci_bf16_round(laci_bf16_value(a[i]) + laci_bf16_value(b[i]));
    to[i] = (uint16_t)(y[i] - 1) < 0x7F80 ? sum : 0; /* true if y[i] > 0: not zero, not negative,
                                                        not NaN */
  }
}

const laci_relu_sum LACI_VARIANT(laci_relu_sum) = {sum_gradients_f32, sum_gradients_bf16};
