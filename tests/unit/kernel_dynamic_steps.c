/* SPDX-License-Identifier: Apache-2.0
 * kernel/pointwise/dynamic_steps: every variant against DynamicQuantizeLinear's own words, bit by
 * bit, at any length and in place. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "cpu/cpu.h"
#include "kernel/pointwise/dynamic_steps.h"

#define LEVEL(name, level) level,
static const laci_cpu_level levels[] = {LACI_KERNEL_VARIANTS(LEVEL)};
#undef LEVEL
enum { N_LEVELS = sizeof levels / sizeof *levels, MOST = 500 };

/* Through u8, as the operator does it. */
static void through(const float *x, int n, float *want, float *scale) {
  float low = 0, high = 0;
  for (int i = 0; i < n; i++) {
    low = fminf(low, x[i]);
    high = fmaxf(high, x[i]);
  }
  *scale = (high - low) / 255;
  const float zero = *scale > 0 ? fminf(rintf(-low / *scale), 255) : 0;
  for (int i = 0; i < n; i++) {
    const float y = *scale > 0 ? rintf(x[i] / *scale) + zero : 0;
    const int byte = !(y > 0) ? 0 : y < 255 ? (int)y : 255;
    want[i] = *scale > 0 ? (float)(byte - (int)zero) : 0;
  }
}

static void compare(const float *x, int n) {
  float want[MOST], found[MOST], scale;
  through(x, n, want, &scale);
  const laci_dynamic_scale to =
      laci_dynamic_scale_from_extremes(laci_find_extremes_variant()(x, n));
  assert_memory_equal(&to.scale, &scale, sizeof scale);
  laci_quantize_dynamic_floats_variant()(to, x, n, found);
  assert_memory_equal(found, want, (size_t)n * sizeof *want);
  memcpy(found, x, (size_t)n * sizeof *x);
  laci_quantize_dynamic_floats_variant()(to, found, n, found);
  assert_memory_equal(found, want, (size_t)n * sizeof *want);
  uint8_t bytes[MOST];
  int32_t sum = laci_quantize_dynamic_bytes_variant()(to, x, n, bytes);
  for (int i = 0; i < n; i++) {
    assert_true((float)bytes[i] == want[i] + to.zero);
    sum -= bytes[i];
  }
  assert_int_equal(sum, 0);
}

static void every_variant_is_the_operator(void **state) {
  static const float sizes[] = {1, 1e-3F, 1e20F, 1e-41F};
  const laci_cpu_level start = laci_cpu_level_in_force();
  (void)state;
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    for (int kind = 0; kind < 4 * 4; kind++) {
      const float size = sizes[kind / 4];
      float x[MOST];
      for (int i = 0; i < MOST; i++) {
        const float unit = (float)laci_rng_unit_interval(1, (uint64_t)kind, (uint64_t)i);
        x[i] = (kind % 4 == 0   ? unit - 0.3F
                : kind % 4 == 1 ? unit
                : kind % 4 == 2 ? -unit
                                : 0) *
               size;
      }
      for (int n = 0; n < 140; n++) compare(x, n);
      compare(x, MOST);
    }
  }
  (void)laci_cpu_limit_level(start);
}

static void no_number_counts_for_nothing(void **state) {
  float x[40] = {0};
  (void)state;
  x[3] = NAN;
  x[35] = NAN;
  x[7] = -2;
  x[8] = 3;
  const laci_extremes e = laci_find_extremes_variant()(x, 40);
  assert_true(e.low == -2 && e.high == 3);
  float y[40];
  const laci_dynamic_scale to = laci_dynamic_scale_from_extremes(e);
  laci_quantize_dynamic_floats_variant()(to, x, 40, y);
  assert_true(y[3] == -to.zero && y[35] == -to.zero);
  uint8_t bytes[40];
  (void)laci_quantize_dynamic_bytes_variant()(to, x, 40, bytes);
  assert_true(bytes[3] == 0 && bytes[35] == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_variant_is_the_operator),
                                     cmocka_unit_test(no_number_counts_for_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
