/* SPDX-License-Identifier: Apache-2.0
 * kernel/maxsum and kernel/topn: every variant against the definition, with odd sizes, unaligned
 * columns and guards. */
#include "kernel/maxsum.h"
#include "kernel/topn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "cpu/cpu.h"

enum { MOST_COLUMNS = 70, MOST_ROWS = 4096 + 64, GUARD = 0x5A5A5A5A };

static _Alignas(64)
    uint8_t bytes[MOST_COLUMNS * MOST_ROWS * 2 + 2]; /* columns start one element off alignment */

static void fill(laci_number number, size_t rows, uint64_t seed) {
  for (size_t i = 0; i < (size_t)MOST_COLUMNS * rows; i++) {
    uint64_t bits = laci_rng(seed, 0, i);
    int16_t word = (int16_t)(bits & 0x7FFF);
    if (number == LACI_U8) bytes[1 + i] = (uint8_t)bits;
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
  laci_maxsum_table(number, &job);
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
  } cases[] = {{64, 1, 1}, {64, 4, 4}, {128, 3, 5}, {192, 7, 9}, {MOST_ROWS, 5, 3}, {64, 33, 70}};
  laci_cpu_level start = laci_cpu();
  for (int level = LACI_CPU_ANY; level <= LACI_CPU_AVX512; level++) {
    laci_cpu_cap((laci_cpu_level)level);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      for (int number = LACI_U8; number <= LACI_I16; number++) {
        fill((laci_number)number, cases[i].rows, i);
        expect_table((laci_number)number, cases[i].rows, cases[i].nt, cases[i].nx);
      }
    }
  }
  laci_cpu_cap(start);
}

static int descending(const void *a, const void *b) { return *(const int *)b - *(const int *)a; }

static void expect_top(laci_number number, size_t rows, int n_columns, int n) {
  const void *columns[64];
  int64_t want_sum = 0;
  uint8_t *nth = malloc(rows * 2 + 4);
  assert_non_null(nth);
  memset(nth, 0x5A, rows * 2 + 4);
  for (int c = 0; c < n_columns; c++) columns[c] = column(number, rows, c);
  laci_nth_largest(number, columns, n_columns, n, rows, nth);
  for (size_t r = 0; r < rows; r++) {
    int sorted[64] = {0};
    int16_t word;
    for (int c = 0; c < n_columns; c++) sorted[c] = element(number, rows, c, r);
    qsort(sorted, (size_t)n_columns, sizeof *sorted, descending);
    for (int k = 0; k < n && k < n_columns; k++) want_sum += sorted[k];
    memcpy(&word, nth + 2 * r, sizeof word);
    assert_int_equal(number == LACI_U8 ? nth[r] : word, n <= n_columns ? sorted[n - 1] : 0);
  }
  assert_int_equal(nth[rows * laci_number_size(number)], 0x5A);
  if (n <= n_columns) assert_int_equal(laci_top_sum(number, columns, n_columns, n, rows), want_sum);
  free(nth);
}

static void finds_the_largest_of_any_number_of_columns(void **state) {
  (void)state;
  static const struct {
    size_t rows;
    int n_columns, n;
  } cases[] = {{64, 3, 2}, {256, 4, 2}, {320, 1, 1},  {64, 0, 2},
               {64, 1, 2}, {576, 7, 4}, {64, 63, 33}, {64, 64, 63}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    for (int number = LACI_U8; number <= LACI_I16; number++) {
      fill((laci_number)number, cases[i].rows, 50 + i);
      expect_top((laci_number)number, cases[i].rows, cases[i].n_columns, cases[i].n);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_variant_makes_the_same_table),
      cmocka_unit_test(finds_the_largest_of_any_number_of_columns),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
