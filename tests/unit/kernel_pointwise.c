/* SPDX-License-Identifier: Apache-2.0
 * kernel/swish, kernel/gate, kernel/relu_sum and kernel/squared_error: every variant that this
 * processor has against the formula, at any length, from any address, with guards on both sides;
 * large, tiny and special values. */
#include "kernel/pointwise/gate.h"
#include "kernel/pointwise/relu_sum.h"
#include "kernel/pointwise/squared_error.h"
#include "kernel/pointwise/swish.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "cpu/cpu.h"

#define LEVEL(name, level) level,
static const laci_cpu_level levels[] = {LACI_KERNEL_VARIANTS(LEVEL)};
#undef LEVEL
enum { N_LEVELS = sizeof levels / sizeof *levels, MOST = 4096 };
static const float guard = 12345.5F;

static double swish(double x) { return x / (1 + exp(-x)); }

static void expect_swish(float got, float x) {
  double want = swish((double)x), tolerance = (5e-7 + 1e-7 * fabs((double)x)) * fabs(want) + 1e-35;
  if (!(fabs((double)got - want) <= tolerance)) {
    fail_msg("swish(%.9g): got %.9g, want %.9g", (double)x, (double)got, want);
  }
}

static void swishes_every_length_and_address(void **state) {
  static float memory[MOST + 4];
  laci_cpu_level start = laci_cpu_level_in_force();
  (void)state;
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    for (int64_t n = 0; n < 70; n++) {
      float *x = memory + 1 + n % 3, before[70];
      x[-1] = x[n] = guard;
      for (int64_t at = 0; at < n; at++) {
        before[at] = x[at] =
            (float)(20 * laci_rng_unit_interval(3, (uint64_t)n, (uint64_t)at) - 10);
      }
      laci_swish_variant()(x, n);
      for (int64_t at = 0; at < n; at++) expect_swish(x[at], before[at]);
      assert_true(x[-1] == guard && x[n] == guard);
    }
    (void)laci_cpu_limit_level(start);
  }
}

static void swishes_the_whole_range(void **state) {
  static const float others[] = {0,      -0.0F,  1e-38F, -1e-38F,   1e-45F, 88,     -86.9F,
                                 -87.1F, 88.8F,  -88.8F, 127,       -127,   1000,   -1000,
                                 3e38F,  -3e38F, 1e30F,  -INFINITY, -104,   -103.9F};
  static float x[MOST], before[MOST];
  laci_cpu_level start = laci_cpu_level_in_force();
  (void)state;
  for (int at = 0; at < MOST; at++) before[at] = (float)(at - MOST / 2) / 16;
  for (size_t at = 0; at < sizeof others / sizeof *others; at++) before[at] = others[at];
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    memcpy(x, before, sizeof x);
    laci_swish_variant()(x, MOST);
    for (int at = 0; at < MOST; at++) {
      if (before[at] == -INFINITY) assert_true(x[at] == 0);
      else expect_swish(x[at], before[at]);
    }
    float special[] = {NAN, INFINITY, -NAN, 1};
    laci_swish_variant()(special, 4);
    assert_true(isnan(special[0]) && isnan(special[2]) && special[1] == INFINITY);
    (void)laci_cpu_limit_level(start);
  }
}

static void gates_channels_in_place_and_apart(void **state) {
  enum { PIXELS = 19, N = PIXELS * LACI_GATE_BLOCK };
  static float x[N + 2], y[N + 2], factor[LACI_GATE_BLOCK + 1];
  laci_cpu_level start = laci_cpu_level_in_force();
  (void)state;
  for (int at = 0; at < LACI_GATE_BLOCK; at++) factor[at + 1] = (float)(at * at) / 7 - 3;
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    for (int64_t n = 0; n <= PIXELS; n++) {
      int64_t last = n * LACI_GATE_BLOCK;
      for (int64_t at = 0; at < N; at++)
        x[at + 1] = (float)laci_rng_unit_interval(5, 1, (uint64_t)at);
      y[0] = y[last + 1] = guard;
      laci_gate_variant()(x + 1, factor + 1, n, y + 1);
      for (int64_t at = 0; at < last; at++) {
        assert_true(y[at + 1] == x[at + 1] * factor[1 + at % LACI_GATE_BLOCK]);
      }
      assert_true(y[0] == guard && y[last + 1] == guard);
      laci_gate_variant()(x + 1, factor + 1, n, x + 1);
      if (last > 0) assert_memory_equal(x + 1, y + 1, (size_t)last * sizeof *x);
    }
    (void)laci_cpu_limit_level(start);
  }
}

static uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/** Half of the values of y are zeros of both signs or negative; some are no numbers, or no end. */
static float drawn(uint64_t stream, int64_t at, bool y) {
  static const float special[] = {0.0F, -0.0F, NAN, -NAN, INFINITY, -INFINITY};
  uint64_t kind = laci_rng_integer_below(5, stream, (uint64_t)at, 16);
  if (y && kind < 6) return special[kind];
  return (float)(8 * laci_rng_unit_interval(6, stream, (uint64_t)at) - 4);
}

static void expect_relu_sums(int64_t n, bool in_place) {
  static float a[90], b[90], y[90], to[90];
  static uint16_t ha[90], hb[90], hy[90], hto[90];
  for (int64_t at = 0; at < n; at++) {
    a[at] = drawn(1, at, false);
    b[at] = drawn(2, at, false);
    y[at] = drawn(3, at, true);
    ha[at] = (uint16_t)(bits_of(a[at]) >> 16);
    hb[at] = (uint16_t)(bits_of(b[at]) >> 16);
    hy[at] = (uint16_t)(bits_of(y[at]) >> 16);
  }
  float want[90], half_want[90];
  for (int64_t at = 0; at < n; at++) {
    float left, right, result;
    uint32_t bits = (uint32_t)ha[at] << 16;
    memcpy(&left, &bits, sizeof left);
    bits = (uint32_t)hb[at] << 16;
    memcpy(&right, &bits, sizeof right);
    want[at] = y[at] > 0 ? a[at] + b[at] : 0;
    bits = bits_of(left + right);
    bits = (bits + 0x7FFFU + (bits >> 16 & 1U)) & 0xFFFF0000U;
    memcpy(&result, &bits, sizeof result);
    half_want[at] = y[at] > 0 ? result : 0;
  }
  to[n] = guard;
  hto[n] = 0x1234;
  laci_relu_sum_variant()->f32(a, b, y, n, in_place ? a : to);
  laci_relu_sum_variant()->bf16(ha, hb, hy, n, in_place ? hb : hto);
  for (int64_t at = 0; at < n; at++) {
    assert_int_equal(bits_of(in_place ? a[at] : to[at]), bits_of(want[at]));
    assert_int_equal(in_place ? hb[at] : hto[at], bits_of(half_want[at]) >> 16);
  }
  assert_true(to[n] == guard && hto[n] == 0x1234);
}

static void sums_after_a_relu_have_the_same_bits_everywhere(void **state) {
  laci_cpu_level start = laci_cpu_level_in_force();
  (void)state;
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    for (int64_t n = 0; n < 80; n++) {
      expect_relu_sums(n, false);
      expect_relu_sums(n, true);
    }
    (void)laci_cpu_limit_level(start);
  }
}

static float of_bf16(uint16_t half) {
  uint32_t bits = (uint32_t)half << 16;
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/** Lane i % 16, then lanes in order. */
static void want_sums(const float *x, const float *t, int64_t n, double sums[2]) {
  double error[16] = {0}, energy[16] = {0};
  for (int64_t at = 0; at < n; at++) {
    double off = (double)(x[at] - t[at]);
    error[at % 16] += off * off;
    energy[at % 16] += (double)t[at] * (double)t[at];
  }
  sums[0] = sums[1] = 0;
  for (int lane = 0; lane < 16; lane++) {
    sums[0] += error[lane];
    sums[1] += energy[lane];
  }
}

static void expect_sums(const double got[2], const double want[2]) {
  for (int at = 0; at < 2; at++)
    if (!(got[at] == want[at])) fail_msg("%.17g, want %.17g", got[at], want[at]);
}

static void expect_squared_errors(int64_t n, bool in_place) {
  static float x[90], t[90], to[90], xb[90], tb[90];
  static uint16_t hx[90], ht[90], hto[90];
  double got[2], want[2];
  for (int64_t at = 0; at < n; at++) {
    x[at] = drawn(1, at, false);
    t[at] = drawn(2, at, false);
    hx[at] = (uint16_t)(bits_of(x[at]) >> 16);
    ht[at] = (uint16_t)(bits_of(t[at]) >> 16);
    xb[at] = of_bf16(hx[at]);
    tb[at] = of_bf16(ht[at]);
  }
  laci_squared_error_variant()->sum_f32(x, t, n, got);
  want_sums(x, t, n, want);
  expect_sums(got, want);
  laci_squared_error_variant()->sum_bf16(hx, ht, n, got);
  want_sums(xb, tb, n, want);
  expect_sums(got, want);
  float slopes[90];
  for (int64_t at = 0; at < n; at++) slopes[at] = 0.3F * (x[at] - t[at]);
  to[n] = guard;
  hto[n] = 0x1234;
  laci_squared_error_variant()->slope_f32(x, t, 0.3F, n, in_place ? t : to);
  laci_squared_error_variant()->slope_bf16(hx, ht, 0.3F, n, in_place ? ht : hto);
  for (int64_t at = 0; at < n; at++) {
    uint32_t bits = bits_of(0.3F * (xb[at] - tb[at]));
    bits = (bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16;
    assert_int_equal(bits_of(in_place ? t[at] : to[at]), bits_of(slopes[at]));
    assert_int_equal(in_place ? ht[at] : hto[at], bits);
  }
  assert_true(to[n] == guard && hto[n] == 0x1234);
}

static void squared_errors_have_the_same_bits_everywhere(void **state) {
  laci_cpu_level start = laci_cpu_level_in_force();
  (void)state;
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    for (int64_t n = 0; n < 80; n++) {
      expect_squared_errors(n, false);
      expect_squared_errors(n, true);
    }
    (void)laci_cpu_limit_level(start);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(squared_errors_have_the_same_bits_everywhere),
      cmocka_unit_test(sums_after_a_relu_have_the_same_bits_everywhere),
      cmocka_unit_test(swishes_every_length_and_address),
      cmocka_unit_test(swishes_the_whole_range),
      cmocka_unit_test(gates_channels_in_place_and_apart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
