/* SPDX-License-Identifier: Apache-2.0
 * kernel/pointwise/rows and kernel/pointwise/extreme: every variant that this processor has gives
 * the bits of the definition, for any length, operands of one element, NaN and signed zeros. */
#include "kernel/pointwise/extreme.h"
#include "kernel/pointwise/rows.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "cpu/cpu.h"
#include "tensor/bf16.h"
#include "tensor/narrow.h"

#define LEVEL(name, level) level,
static const laci_cpu_level levels[] = {LACI_KERNEL_VARIANTS(LEVEL)};
#undef LEVEL
enum { N_LEVELS = sizeof levels / sizeof *levels, MOST = 200 };

/* ---- Rows ---- */

typedef struct kind {
  bool gives_floats;
  int n;
  char operands[LACI_ROW_OPERANDS + 1]; /* i: integers, f: floats */
} kind;

static const kind kinds[LACI_N_ROW_KINDS] = {
    [LACI_ROW_AND] = {false, 2, "ii"},
    [LACI_ROW_OR] = {false, 2, "ii"},
    [LACI_ROW_XOR] = {false, 2, "ii"},
    [LACI_ROW_NOT] = {false, 1, "i"},
    [LACI_ROW_EQUAL] = {false, 2, "ii"},
    [LACI_ROW_LESS] = {false, 2, "ii"},
    [LACI_ROW_LESS_EQUAL] = {false, 2, "ii"},
    [LACI_ROW_GREATER] = {false, 2, "ii"},
    [LACI_ROW_GREATER_EQUAL] = {false, 2, "ii"},
    [LACI_ROW_TRUTH] = {false, 1, "i"},
    [LACI_ROW_NUMBER] = {true, 1, "i"},
    [LACI_ROW_F16] = {true, 1, "f"},
    [LACI_ROW_BF16] = {true, 1, "f"},
    [LACI_ROW_COPY_INTEGERS] = {false, 1, "i"},
    [LACI_ROW_COPY_FLOATS] = {true, 1, "f"},
    [LACI_ROW_CHOOSE_INTEGERS] = {false, 3, "iii"},
    [LACI_ROW_CHOOSE_FLOATS] = {true, 3, "iff"},
};

static int64_t wanted_integer(laci_row_kind of, int64_t a, int64_t b, int64_t c) {
  switch (of) {
    case LACI_ROW_AND: return a && b;
    case LACI_ROW_OR: return a || b;
    case LACI_ROW_XOR: return !a != !b;
    case LACI_ROW_NOT: return !a;
    case LACI_ROW_EQUAL: return a == b;
    case LACI_ROW_LESS: return a < b;
    case LACI_ROW_LESS_EQUAL: return a <= b;
    case LACI_ROW_GREATER: return a > b;
    case LACI_ROW_GREATER_EQUAL: return a >= b;
    case LACI_ROW_TRUTH: return a != 0;
    case LACI_ROW_CHOOSE_INTEGERS: return a ? b : c;
    default: return a;
  }
}

static float wanted_float(laci_row_kind of, int64_t condition, float a, float b) {
  switch (of) {
    case LACI_ROW_NUMBER: return (float)condition;
    case LACI_ROW_F16: return laci_f16_nearest(a);
    case LACI_ROW_BF16: return laci_bf16_value(laci_bf16_round(a));
    case LACI_ROW_CHOOSE_FLOATS: return condition ? a : b;
    default: return a;
  }
}

static int64_t integers[LACI_ROW_OPERANDS][MOST];
static float floats[LACI_ROW_OPERANDS][MOST];

static void draw_operands(uint64_t seed) {
  static const float odd[] = {0, -0.0F, INFINITY, -INFINITY, NAN, 65519.0F, 65520.0F, 1e-7F};
  for (int k = 0; k < LACI_ROW_OPERANDS; k++) {
    for (uint64_t i = 0; i < MOST; i++) {
      const uint64_t at = i + (uint64_t)k * MOST;
      integers[k][i] = (int64_t)laci_rng_integer_below(seed, 1, at, 5) - 2;
      if (i % 11 == 0) integers[k][i] *= (int64_t)1 << 40;
      floats[k][i] = (float)(40 * laci_rng_unit_interval(seed, 2, at) - 20);
      if (i % 7 == 0) floats[k][i] = odd[laci_rng_integer_below(seed, 3, at, 8)];
    }
  }
}

static void expect_row(laci_row_kind of, int64_t n, int single) {
  static int64_t to_integers[MOST + 1];
  static float to_floats[MOST + 1];
  const void *from[LACI_ROW_OPERANDS] = {NULL};
  int64_t steps[LACI_ROW_OPERANDS] = {0};
  for (int k = 0; k < kinds[of].n; k++) {
    from[k] = kinds[of].operands[k] == 'i' ? (void *)integers[k] : (void *)floats[k];
    steps[k] = !(single >> k & 1);
  }
  to_integers[n] = 77;
  to_floats[n] = 77;
  laci_row_variant(of)(n, kinds[of].gives_floats ? (void *)to_floats : (void *)to_integers, from,
                       steps);
  assert_true(to_integers[n] == 77 && (double)to_floats[n] == 77);
  const int second = of == LACI_ROW_CHOOSE_FLOATS;
  for (int64_t i = 0; i < n; i++) {
    const int64_t a = integers[0][i * steps[0]];
    if (!kinds[of].gives_floats) {
      const int64_t b = integers[1][i * steps[1]], c = integers[2][i * steps[2]];
      assert_int_equal(to_integers[i], wanted_integer(of, a, b, c));
      continue;
    }
    const float want =
        wanted_float(of, a, floats[second][i * steps[second]], floats[2][i * steps[2]]);
    assert_true(isnan(want) ? isnan(to_floats[i]) : !memcmp(&to_floats[i], &want, sizeof want));
  }
}

static void computes_rows_of_any_length(void **state) {
  const laci_cpu_level start = laci_cpu_level_in_force();
  (void)state;
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    draw_operands(4);
    for (int of = 0; of < LACI_N_ROW_KINDS; of++)
      for (int single = 0; single < 1 << kinds[of].n; single++)
        for (int64_t n = 0; n < 70; n += n < 20 ? 1 : 7) expect_row(of, n, single);
    (void)laci_cpu_limit_level(start);
  }
}

/* ---- Extremes ---- */

/* The extreme of a column by comparisons; among zeros +0 is the larger one. */
static float wanted_extreme(const float *x, int64_t n, int64_t inner, bool largest) {
  float best = x[0];
  for (int64_t row = 0; row < n; row++) {
    const float next = x[row * inner];
    if (isnan(next)) return next;
    const bool zeros = next == 0 && best == 0;
    if (zeros ? !signbit(next) == largest : largest ? next > best : next < best) best = next;
  }
  return best;
}

static void expect_extremes(int64_t n, int64_t inner, bool largest, int odd) {
  static const float others[] = {0, -0.0F, INFINITY, -INFINITY};
  float x[40 * 70], y[71];
  for (uint64_t at = 0; at < (uint64_t)(n * inner); at++) {
    x[at] = (float)(2 * laci_rng_unit_interval(6, (uint64_t)odd, at) - 1);
    if (odd == 1) x[at] = others[at % 2];
    if (odd == 2) x[at] = others[laci_rng_integer_below(7, 0, at, 4)];
    if (odd == 3 && at % 13 == 5) x[at] = at % 2 ? NAN : -NAN;
  }
  y[inner] = 77;
  laci_extreme_variant()(x, n, inner, largest, y);
  assert_true((double)y[inner] == 77);
  for (int64_t k = 0; k < inner; k++) {
    const float want = wanted_extreme(x + k, n, inner, largest);
    assert_true(isnan(want) ? isnan(y[k]) : !memcmp(&y[k], &want, sizeof want));
  }
}

static void finds_extremes_of_any_shape(void **state) {
  const laci_cpu_level start = laci_cpu_level_in_force();
  (void)state;
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    for (int odd = 0; odd < 4; odd++)
      for (int largest = 0; largest < 2; largest++)
        for (int64_t n = 1; n <= 40; n += n < 9 ? 1 : 5) {
          expect_extremes(n, 1, largest, odd);
          for (int64_t inner = 2; inner <= 70; inner += 17) expect_extremes(n, inner, largest, odd);
        }
    (void)laci_cpu_limit_level(start);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(computes_rows_of_any_length),
      cmocka_unit_test(finds_extremes_of_any_shape),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
