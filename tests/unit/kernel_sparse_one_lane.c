/* SPDX-License-Identifier: Apache-2.0
 * kernel/sparse/one_lane: every variant against one term after the other, bit by bit; rows that
 * keep nothing stay, whatever x is; nothing is written outside of the sums. */
#include "kernel/sparse/one_lane.h"

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
enum { N_LEVELS = sizeof levels / sizeof *levels, MOST = 300, GUARDS = 16 };

static float drawn(uint64_t stream, uint64_t at) {
  return (float)laci_rng_unit_interval(stream, 1, at) - 0.5F;
}

/* Of each column any number of rows; the last ones keep all, and none. */
static void draw(laci_one_lane_columns *c, uint32_t *rows, float *weight, float *x, int n_rows) {
  const uint64_t all = ((uint64_t)1 << n_rows) - 1;
  uint64_t n_kept = 0;
  for (int64_t at = 0; at < c->n; at++) {
    rows[at] =
        (uint32_t)(laci_rng_integer_below(3, (uint64_t)n_rows, (uint64_t)at, UINT32_MAX) & all);
    if (at == c->n - 1) rows[at] = (uint32_t)all;
    if (at == c->n - 2) rows[at] = 0;
    x[at] = rows[at] ? drawn(5, (uint64_t)at) : NAN;
    n_kept += (uint64_t)__builtin_popcount(rows[at]);
  }
  for (uint64_t at = 0; at < n_kept; at++) weight[at] = drawn(7, at);
  for (uint64_t at = n_kept; at < n_kept + LACI_ONE_LANE_PADDING; at++) weight[at] = NAN;
  c->rows = rows;
  c->weight = weight;
  c->x = x;
}

static void expect_terms(int64_t n, int n_rows) {
  uint32_t rows[MOST];
  float x[MOST], want[LACI_ONE_LANE_ROWS], got[LACI_ONE_LANE_ROWS + GUARDS];
  float *weight = malloc((MOST * LACI_ONE_LANE_ROWS + LACI_ONE_LANE_PADDING) * sizeof *weight);
  const laci_cpu_level start = laci_cpu_level_in_force();
  assert_non_null(weight);
  laci_one_lane_columns c = {.n = n, .next = {{rows, n / 3}, {weight, 2 * n}}};
  draw(&c, rows, weight, x, n_rows);
  for (int row = 0; row < LACI_ONE_LANE_ROWS; row++)
    want[row] = row % 3 ? -0.0F : drawn(9, (uint64_t)row);
  float begin[LACI_ONE_LANE_ROWS];
  memcpy(begin, want, sizeof begin);
  const float *w = weight;
  for (int64_t at = 0; at < n; at++) {
    for (int row = 0; row < n_rows; row++) {
      if (rows[at] >> row & 1) want[row] = fmaf(*w++, x[at], want[row]);
    }
  }
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    memset(got, 0x5A, sizeof got);
    memcpy(got, begin, sizeof begin);
    laci_one_lane_add_variant()(&c, got);
    assert_memory_equal(got, want, sizeof want);
    for (size_t at = 0; at < GUARDS * sizeof *got; at++) {
      assert_int_equal(((unsigned char *)(got + LACI_ONE_LANE_ROWS))[at], 0x5A);
    }
  }
  (void)laci_cpu_limit_level(start);
  free(weight);
}

static void sums_are_one_term_after_the_other(void **state) {
  (void)state;
  for (int n_rows = 1; n_rows <= LACI_ONE_LANE_ROWS; n_rows++) {
    expect_terms(0, n_rows);
    expect_terms(2, n_rows);
    expect_terms(3 + n_rows % 5, n_rows);
    expect_terms(MOST, n_rows);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sums_are_one_term_after_the_other)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
