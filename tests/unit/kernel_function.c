/* SPDX-License-Identifier: Apache-2.0
 * kernel/pointwise/function: every function over the whole range of floats against double, special
 * values, the same bits from every variant, any length from any address with guards on both sides.
 */
#include "kernel/pointwise/function.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "cpu/cpu.h"

#define LEVEL(name, level) level,
static const laci_cpu_level levels[] = {LACI_KERNEL_VARIANTS(LEVEL)};
#undef LEVEL
enum { N_LEVELS = sizeof levels / sizeof *levels, MOST = 4096 };

static const laci_pointwise functions[] = {
    {LACI_POINTWISE_RELU, 0, 0},
    {LACI_POINTWISE_RELU, 0.01F, 0},
    {LACI_POINTWISE_ELU, 1, 0},
    {LACI_POINTWISE_ELU, 0.7F, 0},
    {LACI_POINTWISE_LOGISTIC, 0, 0},
    {LACI_POINTWISE_TANH, 0, 0},
    {LACI_POINTWISE_LINEAR, 0.2F, 0.5F},
    {LACI_POINTWISE_SWISH, 1, 0},
    {LACI_POINTWISE_SWISH, 1.702F, 0},
    {LACI_POINTWISE_SWISH, -0.5F, 0},
    {LACI_POINTWISE_HARDSWISH, 1.0F / 6, 0.5F},
    {LACI_POINTWISE_GELU_ERF, 0, 0},
    {LACI_POINTWISE_GELU_TANH, 0, 0},
    {LACI_POINTWISE_CLIP, -0.5F, 6},
};
enum { N_FUNCTIONS = sizeof functions / sizeof *functions };

static double logistic(double x) { return 1 / (1 + exp(-x)); }
static double clipped(double x, double low, double high) {
  return x < low ? low : x > high ? high : x;
}
static double gated(double x, double gate) { return gate == 0 ? 0 : x * gate; }

static double value(const laci_pointwise *f, double x) {
  const double alpha = (double)f->alpha, beta = (double)f->beta;
  const double cubic = sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x);
  switch (f->kind) {
    case LACI_POINTWISE_RELU: return x > 0 ? x : alpha == 0 ? 0 : alpha * x;
    case LACI_POINTWISE_ELU: return x > 0 ? x : alpha * expm1(x);
    case LACI_POINTWISE_LOGISTIC: return logistic(x);
    case LACI_POINTWISE_TANH: return tanh(x);
    case LACI_POINTWISE_LINEAR: return alpha * x + beta;
    case LACI_POINTWISE_SWISH: return gated(x, logistic(alpha * x));
    case LACI_POINTWISE_HARDSWISH: return gated(x, clipped(alpha * x + beta, 0, 1));
    case LACI_POINTWISE_GELU_ERF: return gated(x, erfc(-x / sqrt(2)) / 2);
    case LACI_POINTWISE_GELU_TANH: return gated(x, logistic(2 * cubic));
    case LACI_POINTWISE_CLIP: return clipped(x, alpha, beta);
    case LACI_N_POINTWISE: break;
  }
  return NAN;
}

static void check_value(const laci_pointwise *f, float x, float got) {
  const double want = value(f, (double)x);
  const bool same = (double)got == want || (isinf(got) && (double)got == (double)(float)want);
  if (!same && !(fabs((double)got - want) <= 1e-6 * fabs(want) + 2e-38 * (1 + fabs((double)x)))) {
    fail_msg("function %d (%g, %g) of %.9g: got %.9g, want %.9g", (int)f->kind, (double)f->alpha,
             (double)f->beta, (double)x, (double)got, want);
  }
}

/* Every variant has the bits of the scalar one, which has the values. */
static void expect_all(const laci_pointwise *f, const float *x, int64_t n) {
  const laci_cpu_level start = laci_cpu_level_in_force();
  static float want[MOST], got[MOST];
  memcpy(want, x, (size_t)n * sizeof *x);
  laci_pointwise_apply_scalar(f, want, n);
  for (int64_t at = 0; at < n; at++) check_value(f, x[at], want[at]);
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    memcpy(got, x, (size_t)n * sizeof *x);
    laci_pointwise_apply_variant()(f, got, n);
    assert_memory_equal(got, want, (size_t)n * sizeof *x);
    (void)laci_cpu_limit_level(start);
  }
}

static void every_function_has_its_value_everywhere(void **state) {
  static float x[MOST];
  (void)state;
  for (int at = 0; at < N_FUNCTIONS; at++) {
    int64_t n = 0;
    for (uint64_t bits = 0; bits < (uint64_t)1 << 32; bits += 44003) {
      const uint32_t word = (uint32_t)bits;
      memcpy(&x[n], &word, sizeof word);
      n += !isnan(x[n]);
      if (n < MOST) continue;
      expect_all(&functions[at], x, n);
      n = 0;
    }
    expect_all(&functions[at], x, n);
  }
}

static void every_function_has_its_value_near_zero(void **state) {
  static float x[MOST];
  (void)state;
  for (int at = 0; at < N_FUNCTIONS; at++) {
    for (int scale = 1; scale <= 64; scale *= 4) {
      for (int64_t n = 0; n < MOST; n++) {
        x[n] =
            (float)scale * (2 * (float)laci_rng_unit_interval(9, (uint64_t)scale, (uint64_t)n) - 1);
      }
      expect_all(&functions[at], x, MOST);
    }
  }
}

static void infinities_and_nan_are_what_the_functions_say(void **state) {
  const laci_cpu_level start = laci_cpu_level_in_force();
  const float ends[] = {INFINITY, -INFINITY, 3.4e38F, -3.4e38F, 0, -0.0F, 1e-45F, -1e-45F};
  (void)state;
  for (int at = 0; at < N_FUNCTIONS; at++) {
    expect_all(&functions[at], ends, sizeof ends / sizeof *ends);
    for (int level = 0; level < N_LEVELS; level++) {
      const uint32_t payloads[] = {0x7FC001FF, 0xFF800001};
      float nans[] = {NAN, 1, -NAN, 0, 0};
      memcpy(nans + 3, payloads, sizeof payloads);
      if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
      laci_pointwise_apply_variant()(&functions[at], nans, 5);
      for (int i = 0; i < 5; i++) assert_true(!isnan(nans[i]) == (i == 1));
      (void)laci_cpu_limit_level(start);
    }
  }
}

static void any_length_from_any_address(void **state) {
  const float guard = 12345.5F;
  static float memory[128];
  (void)state;
  for (int at = 0; at < N_FUNCTIONS; at++) {
    for (int64_t n = 0; n < 70; n++) {
      float *x = memory + 1 + n % 3, want[70];
      x[-1] = x[n] = guard;
      for (int64_t i = 0; i < n; i++) want[i] = x[i] = (float)(i - 30) / 4;
      laci_pointwise_apply_scalar(&functions[at], want, n);
      laci_pointwise_apply_variant()(&functions[at], x, n);
      assert_memory_equal(x, want, (size_t)n * sizeof *x);
      assert_true(x[-1] == guard && x[n] == guard);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_function_has_its_value_everywhere),
      cmocka_unit_test(every_function_has_its_value_near_zero),
      cmocka_unit_test(infinities_and_nan_are_what_the_functions_say),
      cmocka_unit_test(any_length_from_any_address),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
