/* SPDX-License-Identifier: Apache-2.0
 * kernel/linear/strips.h: every variant that this processor has gives the bits of the scalar one,
 * for any number of rows and strips, from any address, and writes nothing but its result; and
 * the scalar one computes the formula. */
#include "kernel/linear/strips.h"

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
enum {
  N_LEVELS = sizeof levels / sizeof *levels,
  ROWS = 14,
  DEPTH = 37,
  STRIPS = 19,
  COLUMNS = STRIPS * LACI_STRIP,
  APART = 3 /* elements between rows */
};
static const float guard = 12345.5F;

static float x[ROWS * (DEPTH + APART) + 1], w[COLUMNS][DEPTH], strips[COLUMNS * DEPTH + 1],
    start[ROWS * (COLUMNS + APART) + 1];

static float number(uint64_t stream, int64_t at) {
  return (float)(2 * laci_rng_unit_interval(5, stream, (uint64_t)at) - 1);
}

static void fill(void) {
  for (size_t at = 0; at < sizeof x / sizeof *x; at++) x[at] = number(1, (int64_t)at);
  for (size_t at = 0; at < sizeof start / sizeof *start; at++) start[at] = number(2, (int64_t)at);
}

static void set_columns(float *to, int64_t depth) {
  for (int column = 0; column < COLUMNS; column++) {
    for (int64_t k = 0; k < depth; k++) w[column][k] = number(3, column * DEPTH + k);
    laci_strips_set_column(to, depth, column, w[column]);
  }
}

static void check(const laci_strip_product *product, int offset) {
  static float want[ROWS * (COLUMNS + APART) + 1], got[ROWS * (COLUMNS + APART) + 1];
  const laci_cpu_level before = laci_cpu_level_in_force();
  laci_strip_product p = *product;
  for (size_t at = 0; at < sizeof want / sizeof *want; at++) want[at] = got[at] = guard;
  p.y = want + offset;
  laci_multiply_strips_scalar(&p);
  p.y = got + offset;
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    laci_multiply_strips_variant()(&p);
    (void)laci_cpu_limit_level(before);
    if (memcmp(want, got, sizeof want) != 0)
      fail_msg("%s: %d rows, %d strips, depth %d", laci_cpu_level_name(levels[level]),
               (int)p.n_rows, (int)p.n_strips, (int)p.depth);
  }
  for (int64_t row = 0; row < p.n_rows; row++) {
    for (int64_t column = 0; column < p.n_strips * LACI_STRIP; column++) {
      double sum = (double)p.start[row * p.start_row + column];
      for (int64_t k = 0; k < p.depth; k++)
        sum += (double)p.x[row * p.x_row + k] * (double)w[column][k];
      const double y = (double)want[offset + row * p.y_row + column];
      if (!(fabs(y - sum) <= 1e-5)) fail_msg("got %g, want %g", y, sum);
    }
  }
}

static void multiplies_any_rows_by_any_strips(void **state) {
  (void)state;
  fill();
  for (int64_t depth = 1; depth <= DEPTH; depth += 12) {
    for (int offset = 0; offset < 2; offset++) {
      set_columns(strips + offset, depth);
      for (int64_t n = 1; n <= STRIPS; n++) {
        for (int64_t rows = 1; rows <= ROWS; rows++) {
          laci_strip_product p = {.n_rows = rows,
                                  .depth = depth,
                                  .n_strips = n,
                                  .x = x + offset,
                                  .strips = strips + offset,
                                  .start = start + offset,
                                  .x_row = DEPTH + APART,
                                  .start_row = rows % 2 ? 0 : COLUMNS + APART,
                                  .y_row = COLUMNS + APART};
          check(&p, offset);
        }
      }
    }
  }
}

static void adds_to_what_is_there(void **state) {
  static float want[ROWS * COLUMNS], got[ROWS * COLUMNS];
  const laci_cpu_level before = laci_cpu_level_in_force();
  (void)state;
  fill();
  set_columns(strips, DEPTH);
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    laci_strip_product p = {.n_rows = ROWS,
                            .depth = DEPTH,
                            .n_strips = STRIPS,
                            .x = x,
                            .strips = strips,
                            .x_row = DEPTH,
                            .start_row = COLUMNS,
                            .y_row = COLUMNS};
    p.start = start, p.y = want;
    laci_multiply_strips_variant()(&p);
    memcpy(got, start, sizeof got);
    p.start = p.y = got;
    laci_multiply_strips_variant()(&p);
    (void)laci_cpu_limit_level(before);
    assert_memory_equal(want, got, sizeof want);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(multiplies_any_rows_by_any_strips),
      cmocka_unit_test(adds_to_what_is_there),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
