/* SPDX-License-Identifier: Apache-2.0
 * squared_error.h for every instruction set: the build compiles this once for each (variants.h).
 * Lanes are arrays, so that the compiler vectorizes the loops without changing the order of
 * sums. */
#include "kernel/pointwise/squared_error.h"
#include "tensor/bf16.h"

#if defined(__clang__)
#define EACH_BY_ITSELF _Pragma("clang loop vectorize(assume_safety)")
#else
#define EACH_BY_ITSELF _Pragma("GCC ivdep")
#endif

enum { LANES = 16 };

typedef struct lanes {
  double error[LANES], energy[LANES];
} lanes;

static inline void add_squares_to_lanes(lanes *l, const float *x, const float *t, int n) {
  for (int i = 0; i < n; i++) {
    double off = (double)(x[i] - t[i]);
    l->error[i] += off * off;
  }
  for (int i = 0; i < n; i++) l->energy[i] += (double)t[i] * (double)t[i];
}

static inline void sum_lanes(const lanes *l, double sums[2]) {
  sums[0] = sums[1] = 0;
  for (int i = 0; i < LANES; i++) {
    sums[0] += l->error[i];
    sums[1] += l->energy[i];
  }
}

static void sum_squared_errors_f32(const float *x, const float *t, int64_t n, double sums[2]) {
  lanes l = {.error = {0}};
  int64_t at = 0;
  for (; at + LANES <= n; at += LANES) add_squares_to_lanes(&l, x + at, t + at, LANES);
  add_squares_to_lanes(&l, x + at, t + at, (int)(n - at));
  sum_lanes(&l, sums);
}

static inline void widen_bf16(const uint16_t *from, int n, float *to) {
  for (int i = 0; i < n; i++) to[i] = laci_bf16_value(from[i]);
}

static void sum_squared_errors_bf16(const uint16_t *x, const uint16_t *t, int64_t n,
                                    double sums[2]) {
  lanes l = {.error = {0}};
  float a[LANES], b[LANES];
  int64_t at = 0;
  for (; at + LANES <= n; at += LANES) {
    widen_bf16(x + at, LANES, a);
    widen_bf16(t + at, LANES, b);
    add_squares_to_lanes(&l, a, b, LANES);
  }
  widen_bf16(x + at, (int)(n - at), a);
  widen_bf16(t + at, (int)(n - at), b);
  add_squares_to_lanes(&l, a, b, (int)(n - at));
  sum_lanes(&l, sums);
}

static void gradient_f32(const float *x, const float *t, float factor, int64_t n, float *to) {
  EACH_BY_ITSELF
  for (int64_t i = 0; i < n; i++) to[i] = factor * (x[i] - t[i]);
}

static void gradient_bf16(const uint16_t *x, const uint16_t *t, float factor, int64_t n,
                          uint16_t *to) {
  EACH_BY_ITSELF
  for (int64_t i = 0; i < n; i++)
    to[i] = laci_bf16_round(factor * (laci_bf16_value(x[i]) - laci_bf16_value(t[i])));
}

const laci_squared_error LACI_VARIANT(laci_squared_error) = {
    sum_squared_errors_f32, sum_squared_errors_bf16, gradient_f32, gradient_bf16};
