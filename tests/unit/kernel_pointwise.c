/* SPDX-License-Identifier: Apache-2.0
 * kernel/swish and kernel/gate: every variant that this processor has against the formula, at any
 * length, from any address, with guards on both sides; large, tiny and special values. */
#include "kernel/gate.h"
#include "kernel/swish.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
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
  laci_cpu_level start = laci_cpu();
  (void)state;
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_cap(levels[level]) != levels[level]) continue;
    for (int64_t n = 0; n < 70; n++) {
      float *x = memory + 1 + n % 3, before[70];
      x[-1] = x[n] = guard;
      for (int64_t at = 0; at < n; at++) {
        before[at] = x[at] = (float)(20 * laci_rng_unit(3, (uint64_t)n, (uint64_t)at) - 10);
      }
      laci_swish_now()(x, n);
      for (int64_t at = 0; at < n; at++) expect_swish(x[at], before[at]);
      assert_true(x[-1] == guard && x[n] == guard);
    }
    (void)laci_cpu_cap(start);
  }
}

static void swishes_the_whole_range(void **state) {
  static const float others[] = {0,      -0.0F,  1e-38F, -1e-38F,   1e-45F, 88,     -86.9F,
                                 -87.1F, 88.8F,  -88.8F, 127,       -127,   1000,   -1000,
                                 3e38F,  -3e38F, 1e30F,  -INFINITY, -104,   -103.9F};
  static float x[MOST], before[MOST];
  laci_cpu_level start = laci_cpu();
  (void)state;
  for (int at = 0; at < MOST; at++) before[at] = (float)(at - MOST / 2) / 16;
  for (size_t at = 0; at < sizeof others / sizeof *others; at++) before[at] = others[at];
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_cap(levels[level]) != levels[level]) continue;
    memcpy(x, before, sizeof x);
    laci_swish_now()(x, MOST);
    for (int at = 0; at < MOST; at++) {
      if (before[at] == -INFINITY) assert_true(x[at] == 0);
      else expect_swish(x[at], before[at]);
    }
    float special[] = {NAN, INFINITY, -NAN, 1};
    laci_swish_now()(special, 4);
    assert_true(isnan(special[0]) && isnan(special[2]) && special[1] == INFINITY);
    (void)laci_cpu_cap(start);
  }
}

static void gates_planes_in_place_and_apart(void **state) {
  enum { PIXELS = 19, N = PIXELS * LACI_GATE_BLOCK };
  static float x[N + 2], y[N + 2], factor[LACI_GATE_BLOCK + 1];
  laci_cpu_level start = laci_cpu();
  (void)state;
  for (int at = 0; at < LACI_GATE_BLOCK; at++) factor[at + 1] = (float)(at * at) / 7 - 3;
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_cap(levels[level]) != levels[level]) continue;
    for (int64_t n = 0; n <= PIXELS; n++) {
      int64_t last = n * LACI_GATE_BLOCK;
      for (int64_t at = 0; at < N; at++) x[at + 1] = (float)laci_rng_unit(5, 1, (uint64_t)at);
      y[0] = y[last + 1] = guard;
      laci_gate_now()(x + 1, factor + 1, n, y + 1);
      for (int64_t at = 0; at < last; at++) {
        assert_true(y[at + 1] == x[at + 1] * factor[1 + at % LACI_GATE_BLOCK]);
      }
      assert_true(y[0] == guard && y[last + 1] == guard);
      laci_gate_now()(x + 1, factor + 1, n, x + 1);
      if (last > 0) assert_memory_equal(x + 1, y + 1, (size_t)last * sizeof *x);
    }
    (void)laci_cpu_cap(start);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(swishes_every_length_and_address),
      cmocka_unit_test(swishes_the_whole_range),
      cmocka_unit_test(gates_planes_in_place_and_apart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
