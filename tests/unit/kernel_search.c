/* SPDX-License-Identifier: Apache-2.0
 * kernel/maxsum and kernel/topn: every variant that this processor has against the definition, over
 * sizes at the edges of tiles and parts, with ties, zeros and largest elements, unaligned columns
 * and guards. */
#include "kernel/search/maxsum.h"
#include "kernel/search/topn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "cpu/cpu.h"

enum { MOST_COLUMNS = 70, MOST_ROWS = 4096 + 64, GUARD = 0x5A5A5A5A };

/* What the columns hold. */
typedef enum fill_kind { ANYTHING, FEW_VALUES, ZEROS, LARGEST, N_FILLS } fill_kind;

#define LEVEL(name, level) level,
static const laci_cpu_level levels[] = {LACI_KERNEL_VARIANTS(LEVEL)};
#undef LEVEL
enum { N_LEVELS = sizeof levels / sizeof *levels };

static _Alignas(64)
    uint8_t bytes[MOST_COLUMNS * MOST_ROWS * 2 + 2]; /* columns start one element off alignment */

static void fill(laci_number number, size_t rows, fill_kind kind, uint64_t seed) {
  const int largest = number == LACI_U8 ? UINT8_MAX : INT16_MAX;
  for (size_t i = 0; i < (size_t)MOST_COLUMNS * rows; i++) {
    uint64_t bits = laci_rng(seed, 0, i);
    int value = (int)(bits % ((uint64_t)largest + 1));
    if (kind == FEW_VALUES) value = (int)(bits % 3) * (largest / 2);
    if (kind == ZEROS) value = 0;
    if (kind == LARGEST) value = largest;
    int16_t word = (int16_t)value;
    if (number == LACI_U8) bytes[1 + i] = (uint8_t)value;
    else memcpy(bytes + 2 + 2 * i, &word, sizeof word);
  }
}

static const void *column(laci_number number, size_t rows, int c) {
  return bytes + (1 + (size_t)c * rows) * laci_number_size(number);
}

static int element(laci_number number, size_t rows, int c, size_t r) {
  int16_t word;
  if (number == LACI_U8) return ((const uint8_t *)column(number, rows, c))[r];
  memcpy(&word, (const uint8_t *)column(number, rows, c) + 2 * r, sizeof word);
  return word;
}

/* A table of the first columns against the last ones, made by the variant in force. */
static void expect_table(laci_number number, size_t rows, int nt, int nx) {
  const void *t[MOST_COLUMNS], *x[MOST_COLUMNS];
  const size_t stride = (size_t)nx + 3;
  int32_t *out = malloc(sizeof *out * ((size_t)nt * stride));
  assert_non_null(out);
  for (size_t i = 0; i < (size_t)nt * stride; i++) out[i] = GUARD;
  for (int i = 0; i < nt; i++) t[i] = column(number, rows, i);
  for (int j = 0; j < nx; j++) x[j] = column(number, rows, MOST_COLUMNS - 1 - j);
  laci_maxsum_job job = {
      .t = t, .x = x, .nt = nt, .nx = nx, .rows = rows, .out = out, .out_stride = stride};
  laci_maxsum_compute_table(number, &job);
  for (int i = 0; i < nt; i++) {
    for (int j = 0; j < nx; j++) {
      int32_t want = 0;
      for (size_t r = 0; r < rows; r++) {
        int a = element(number, rows, i, r), b = element(number, rows, MOST_COLUMNS - 1 - j, r);
        want += a > b ? a : b;
      }
      assert_int_equal(out[(size_t)i * stride + (size_t)j], want);
    }
    for (size_t j = (size_t)nx; j < stride; j++)
      assert_int_equal(out[(size_t)i * stride + j], GUARD);
  }
  free(out);
}

static void every_variant_makes_the_same_table(void **state) {
  (void)state;
  static const struct {
    size_t rows;
    int nt, nx;
  } cases[] = {{64, 1, 1},   {64, 4, 4},        {128, 3, 5}, {192, 7, 9}, {MOST_ROWS, 5, 3},
               {64, 33, 70}, {1024 + 64, 2, 6}, {0, 3, 3},   {64, 0, 4},  {2048, 4, 4}};
  laci_cpu_level start = laci_cpu_level_in_force();
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      for (int number = LACI_U8; number <= LACI_I16; number++) {
        fill((laci_number)number, cases[i].rows, i % N_FILLS, i);
        expect_table((laci_number)number, cases[i].rows, cases[i].nt, cases[i].nx);
      }
    }
  }
  laci_cpu_limit_level(start);
}

static void tables_of_random_sizes_are_right(void **state) {
  (void)state;
  laci_cpu_level start = laci_cpu_level_in_force();
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    for (uint64_t i = 0; i < 24; i++) {
      uint64_t bits = laci_rng(7, 0, i);
      laci_number number = bits & 1 ? LACI_U8 : LACI_I16;
      size_t rows = 64 * (1 + (size_t)(bits >> 8) % 20);
      fill(number, rows, (fill_kind)((bits >> 4) % N_FILLS), i);
      expect_table(number, rows, 1 + (int)((bits >> 20) % 12), 1 + (int)((bits >> 40) % 20));
    }
  }
  laci_cpu_limit_level(start);
}

/* As maxsum.c calls them for the second part of a table, but with more rows than it ever would. */
static void variants_begin_at_a_row_and_add(void **state) {
  (void)state;
  enum { FIRST = 64, ROWS = MOST_ROWS - FIRST };
  static const struct {
    laci_cpu_level level;
    laci_maxsum *make[2];
  } variants[] = {
#define VARIANT(name, level) {level, {laci_maxsum_u8_##name, laci_maxsum_i16_##name}},
      LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
  };
  laci_cpu_level start = laci_cpu_level_in_force();
  for (int v = 0; v < N_LEVELS; v++) {
    if (laci_cpu_limit_level(variants[v].level) != variants[v].level) continue;
    for (int number = LACI_U8; number <= LACI_I16; number++) {
      fill((laci_number)number, MOST_ROWS, LARGEST, 0);
      const void *t[2] = {column(number, MOST_ROWS, 0), column(number, MOST_ROWS, 1)};
      const int32_t sum = ROWS * (number == LACI_U8 ? UINT8_MAX : INT16_MAX);
      int32_t out[4] = {1, 2, 3, 4};
      laci_maxsum_job job = {.t = t, .x = t, .nt = 2, .nx = 2, .rows = ROWS, .out = out};
      job.out_stride = 2;
      job.first = FIRST;
      job.adds = true;
      variants[v].make[number](&job);
      for (int k = 0; k < 4; k++) assert_int_equal(out[k], sum + k + 1);
      job.adds = false;
      variants[v].make[number](&job);
      for (int k = 0; k < 4; k++) assert_int_equal(out[k], sum);
    }
  }
  laci_cpu_limit_level(start);
}

static int descending(const void *a, const void *b) { return *(const int *)b - *(const int *)a; }

static void expect_top(laci_number number, size_t rows, int n_columns, int n) {
  const void *columns[64];
  const size_t size = laci_number_size(number);
  int64_t want_sum = 0;
  uint8_t *nth = malloc((rows + 1) * size);
  assert_non_null(nth);
  memset(nth, 0x5A, (rows + 1) * size);
  for (int c = 0; c < n_columns; c++) columns[c] = column(number, rows, c);
  laci_nth_largest(number, columns, n_columns, n, rows, nth);
  for (size_t r = 0; r < rows; r++) {
    int sorted[64] = {0};
    int16_t word = 0;
    for (int c = 0; c < n_columns; c++) sorted[c] = element(number, rows, c, r);
    qsort(sorted, (size_t)n_columns, sizeof *sorted, descending);
    for (int k = 0; k < n && k < n_columns; k++) want_sum += sorted[k];
    if (number == LACI_I16) memcpy(&word, nth + 2 * r, sizeof word);
    assert_int_equal(number == LACI_U8 ? nth[r] : word, n <= n_columns ? sorted[n - 1] : 0);
  }
  assert_int_equal(nth[rows * size], 0x5A);
  if (n <= n_columns)
    assert_int_equal(laci_sum_n_largest(number, columns, n_columns, n, rows), want_sum);
  free(nth);
}

static void every_variant_finds_the_largest(void **state) {
  (void)state;
  static const struct {
    size_t rows;
    int n_columns, n;
  } cases[] = {{64, 3, 2},  {256, 4, 2},  {320, 1, 1},  {64, 0, 2},    {64, 1, 2},
               {576, 7, 4}, {64, 63, 33}, {64, 64, 63}, {128, 64, 64}, {0, 3, 2}};
  laci_cpu_level start = laci_cpu_level_in_force();
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      for (int number = LACI_U8; number <= LACI_I16; number++) {
        fill((laci_number)number, cases[i].rows, i % N_FILLS, 50 + i);
        expect_top((laci_number)number, cases[i].rows, cases[i].n_columns, cases[i].n);
      }
    }
  }
  laci_cpu_limit_level(start);
}

static void every_pattern_up_to_8_of_16_is_right(void **state) {
  (void)state;
  laci_cpu_level start = laci_cpu_level_in_force();
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    for (int number = LACI_U8; number <= LACI_I16; number++) {
      for (int kind = ANYTHING; kind <= FEW_VALUES; kind++) {
        fill((laci_number)number, 64, (fill_kind)kind, 90);
        for (int n = 1; n <= 9; n++) {
          for (int m = n; m <= 16; m += 1 + n / 2) expect_top((laci_number)number, 64, m, n);
        }
      }
    }
  }
  laci_cpu_limit_level(start);
}

/* More rows than lanes of 32 bits can sum without being emptied. */
static void sums_of_many_large_elements_do_not_overflow(void **state) {
  (void)state;
  enum { ROWS = 1 << 16, COLUMNS = 64 };
  int16_t *ones = malloc(ROWS * sizeof *ones);
  assert_non_null(ones);
  const void *columns[COLUMNS];
  for (int r = 0; r < ROWS; r++) ones[r] = INT16_MAX;
  for (int c = 0; c < COLUMNS; c++) columns[c] = ones;
  laci_cpu_level start = laci_cpu_level_in_force();
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    for (int n = 2; n <= COLUMNS; n += 31) {
      assert_true(laci_sum_n_largest(LACI_I16, columns, COLUMNS, n, ROWS) ==
                  (int64_t)ROWS * n * INT16_MAX);
    }
    assert_true(laci_sum_n_largest(LACI_I16, columns, 4, 2, ROWS) == (int64_t)ROWS * 2 * INT16_MAX);
    assert_true(laci_sum_n_largest(LACI_U8, columns, 4, 2, 2 * ROWS) ==
                (int64_t)ROWS * 2 * (255 + 127));
  }
  laci_cpu_limit_level(start);
  free(ones);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_variant_makes_the_same_table),
      cmocka_unit_test(tables_of_random_sizes_are_right),
      cmocka_unit_test(variants_begin_at_a_row_and_add),
      cmocka_unit_test(every_variant_finds_the_largest),
      cmocka_unit_test(every_pattern_up_to_8_of_16_is_right),
      cmocka_unit_test(sums_of_many_large_elements_do_not_overflow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
