/* SPDX-License-Identifier: Apache-2.0
 * kernel/pointwise/table: every variant against an index computed by the rules of QuantizeLinear,
 * bit by bit, at any alignment and in place. */
#include "kernel/pointwise/table.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "cpu/cpu.h"

#define LEVEL(name, level) level,
static const laci_cpu_level levels[] = {LACI_KERNEL_VARIANTS(LEVEL)};
#undef LEVEL
enum { N_LEVELS = sizeof levels / sizeof *levels, MOST = 1000, GUARD = 0x5A };

static void for_each_level(void (*check)(void)) {
  const laci_cpu_level start = laci_cpu_level_in_force();
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) == levels[level]) check();
  }
  (void)laci_cpu_limit_level(start);
}

/* ---- Floats ---- */

/* The byte of x, through an integer as QuantizeLinear computes it. */
static int byte_of(float x, float scale, int zero) {
  const float quotient = x / scale;
  const double y = (double)rintf(quotient) + zero;
  return isnan(y) || y < 0 ? 0 : y > UINT8_MAX ? UINT8_MAX : (int)y;
}

static void compare_floats(const laci_byte_table *table, const float *x, const float *want,
                           int64_t n) {
  float memory[MOST + 4];
  for (int shift = 0; shift < 3; shift++) {
    memset(memory, GUARD, sizeof memory);
    laci_table_look_up_floats_variant()(table, x, n, memory + shift);
    assert_memory_equal(memory + shift, want, (size_t)n * sizeof *want);
    memcpy(memory + shift, x, (size_t)n * sizeof *x);
    const float after = memory[shift + n];
    laci_table_look_up_floats_variant()(table, memory + shift, n, memory + shift);
    assert_memory_equal(memory + shift, want, (size_t)n * sizeof *want);
    assert_memory_equal(&memory[shift + n], &after, sizeof after);
  }
}

static void check_floats(void) {
  static const float edges[] = {0,      -0.0F,  0.5F,    -0.5F, 1.5F,     254.5F,    255.5F, 1e30F,
                                -1e30F, 1e-40F, -1e-40F, NAN,   INFINITY, -INFINITY, FLT_MAX};
  static const struct {
    float scale;
    int zero;
  } cases[] = {{1, 0}, {0.25F, 128}, {0.1F, 3}, {3.7F, 255}, {1e30F, 127}, {0.0078125F, 10}};
  enum { N_EDGES = sizeof edges / sizeof *edges };
  float x[MOST], want[MOST];
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    const float scale = cases[at].scale;
    const int zero = cases[at].zero;
    laci_byte_table table = {.from = {scale, (float)-zero, (float)(UINT8_MAX - zero)}};
    for (int i = 0; i < LACI_N_BYTES; i++) table.values[i] = sinf((float)i) * (float)(i - 100);
    table.values[7] = -0.0F;
    table.values[8] = INFINITY;
    for (int i = 0; i < MOST; i++) {
      const float unit = (float)laci_rng_unit_interval(1, at, (uint64_t)i) - 0.5F;
      x[i] = i < N_EDGES       ? edges[i]
             : i < 2 * N_EDGES ? edges[i - N_EDGES] * scale
                               : unit * 700 * scale;
      want[i] = table.values[byte_of(x[i], scale, zero)];
    }
    for (int n = 0; n < 70; n++) compare_floats(&table, x, want, n);
    compare_floats(&table, x, want, MOST);
  }
}

static void looks_up_floats(void **state) {
  (void)state;
  for_each_level(check_floats);
}

/* A quantized number and the number before it have the same result. */
static void a_quantized_number_has_the_same_index(void **state) {
  laci_byte_table table = {.from = {0.0373F, -77, 178}};
  float x[MOST], quantized[MOST], y[MOST], again[MOST];
  (void)state;
  for (int i = 0; i < LACI_N_BYTES; i++) table.values[i] = (float)i;
  for (int i = 0; i < MOST; i++) x[i] = (float)laci_rng_unit_interval(2, 0, (uint64_t)i) * 14 - 5;
  laci_fake_quantize_scalar(&table.from, x, MOST, quantized);
  laci_table_look_up_floats_variant()(&table, x, MOST, y);
  laci_table_look_up_floats_variant()(&table, quantized, MOST, again);
  assert_memory_equal(y, again, sizeof y);
}

/* ---- Bytes ---- */

static void check_bytes(void) {
  uint8_t table[LACI_N_BYTES], x[MOST], memory[MOST + 4];
  for (int i = 0; i < LACI_N_BYTES; i++) table[i] = (uint8_t)(i * 37 + 11);
  for (int i = 0; i < MOST; i++) x[i] = (uint8_t)(laci_rng_unit_interval(3, 0, (uint64_t)i) * 256);
  for (int n = 0; n <= MOST; n += n < 200 ? 1 : 97) {
    for (int shift = 0; shift < 3; shift++) {
      memset(memory, GUARD, sizeof memory);
      laci_table_look_up_bytes_variant()(table, x, n, memory + shift);
      for (int i = 0; i < n; i++) assert_int_equal(memory[shift + i], table[x[i]]);
      assert_int_equal(memory[shift + n], GUARD);
      assert_true(shift == 0 || memory[shift - 1] == GUARD);
      memcpy(memory + shift, x, (size_t)n);
      laci_table_look_up_bytes_variant()(table, memory + shift, n, memory + shift);
      for (int i = 0; i < n; i++) assert_int_equal(memory[shift + i], table[x[i]]);
    }
  }
}

static void looks_up_bytes(void **state) {
  (void)state;
  for_each_level(check_bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(looks_up_floats),
      cmocka_unit_test(a_quantized_number_has_the_same_index),
      cmocka_unit_test(looks_up_bytes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
