/* SPDX-License-Identifier: Apache-2.0
 * The baselines: every variant walks the same numbers as plain floats do, counts its work right,
 * and every word of memory is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "cpu/cpu.h"
#include "kernel/peak/peak.h"

static float walked(int iterations) {
  float x = 0;
  for (int iteration = 0; iteration < iterations; iteration++) x = x * 0.5F + 1;
  return x;
}

static void every_variant_walks_the_same_numbers(void **state) {
  (void)state;
  static const struct {
    laci_cpu_level level;
    laci_peak_loop *run;
  } variants[] = {
#define VARIANT(name, level) {level, laci_peak_f32_##name},
      LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
  };
  for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
    if (variants[v].level > laci_cpu_level_in_force()) continue;
    float value;
    double one = variants[v].run(1, &value);
    assert_true(one >= 2 && value == 1);
    for (int iterations = 0; iterations < 70; iterations++) {
      assert_true(variants[v].run(iterations, &value) == one * iterations);
      assert_true(value == walked(iterations));
    }
  }
}

static void the_one_in_force_has_a_name(void **state) {
  (void)state;
  laci_peak_kernel kernel = laci_peak_f32_variant();
  float value;
  assert_non_null(kernel.name);
  assert_true(kernel.run(64, &value) > 0 && value == 2);
}

static void bf16_counts_its_iterations_where_there_is_any(void **state) {
  (void)state;
  laci_peak_kernel kernel = laci_peak_bf16_variant();
  float value;
  assert_non_null(kernel.name);
  if (!kernel.run) return;
  double one = kernel.run(1, &value);
  assert_true(kernel.run(50, &value) == 50 * one && value == 50);
}

static void every_word_is_read(void **state) {
  (void)state;
  enum { MOST = 67 };
  uint64_t *words = laci_alloc(MOST, sizeof *words);
  assert_non_null(words);
  for (size_t n = 0; n <= MOST; n++) {
    uint64_t all = 0;
    for (size_t at = 0; at < n; at++) all ^= words[at] = (at + 1) * 0x9E3779B97F4A7C15U;
    assert_true(laci_peak_read_memory(words, n) == all);
  }
  laci_free(words);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_variant_walks_the_same_numbers),
      cmocka_unit_test(the_one_in_force_has_a_name),
      cmocka_unit_test(bf16_counts_its_iterations_where_there_is_any),
      cmocka_unit_test(every_word_is_read),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
