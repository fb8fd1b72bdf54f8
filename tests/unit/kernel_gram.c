/* SPDX-License-Identifier: Apache-2.0
 * kernel/gram: sums of products of all kinds of layers against plain loops of doubles, by every
 * instruction set; nothing is written outside of the sums and the scratch memory. */
#include "kernel/gram/gram.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/rng.h"
#include "cpu/cpu.h"
#include "cpu/pool.h"
#include "kernel/gram/dots.h"
#include "support/unfold_rows.h"

#define LEVEL(name, level) level,
static const laci_cpu_level levels[] = {LACI_KERNEL_VARIANTS(LEVEL)};
#undef LEVEL
enum { N_LEVELS = sizeof levels / sizeof *levels, GUARD = 64 };

static laci_pool *pool;

typedef struct layer_case {
  const char *name;
  laci_unfold unfold;
  bool correlates;
} layer_case;

#define NONE \
  { 1, 1, 1, 1, 1, 0 }
/* axes: in, out, kernel, stride, dilation, pad */
static const layer_case cases[] = {
    {"a matrix", {37, 1, 83, {NONE, NONE, NONE}, false}, false},
    {"a matrix of more than a block", {2500, 1, 9, {NONE, NONE, NONE}, false}, false},
    {"a matrix in groups", {130, 3, 7, {NONE, NONE, NONE}, false}, false},
    {"places of a value", {3, 1, 70, {NONE, NONE, {50, 50, 1, 1, 1, 0}}, false}, false},
    {"1 x 1", {3, 1, 17, {NONE, {5, 5, 1, 1, 1, 0}, {7, 7, 1, 1, 1, 0}}, false}, false},
    {"1 x 1, stride 2", {3, 1, 5, {NONE, {5, 3, 1, 2, 1, 0}, {7, 4, 1, 2, 1, 0}}, false}, false},
    {"3 x 3", {3, 1, 16, {NONE, {8, 8, 3, 1, 1, 1}, {9, 9, 3, 1, 1, 1}}, false}, true},
    {"3 x 3, two tiles", {2, 1, 70, {NONE, {6, 6, 3, 1, 1, 1}, {7, 7, 3, 1, 1, 1}}, false}, true},
    {"3 x 3, large", {2, 1, 9, {NONE, {60, 60, 3, 1, 1, 1}, {41, 41, 3, 1, 1, 1}}, false}, true},
    {"3 x 3, many", {70, 1, 8, {NONE, {11, 11, 3, 1, 1, 1}, {12, 12, 3, 1, 1, 1}}, false}, true},
    {"no padding", {2, 1, 8, {NONE, {8, 6, 3, 1, 1, 0}, {9, 7, 3, 1, 1, 0}}, false}, true},
    {"at one end", {2, 1, 8, {NONE, {8, 8, 3, 1, 1, 2}, {9, 8, 3, 1, 1, 0}}, false}, true},
    {"much padding", {2, 1, 8, {NONE, {8, 12, 3, 1, 1, 3}, {9, 15, 3, 1, 1, 4}}, false}, true},
    {"dilation 2", {2, 1, 8, {NONE, {13, 13, 3, 1, 2, 2}, {12, 10, 3, 1, 2, 1}}, false}, true},
    {"5 x 3", {2, 1, 8, {NONE, {13, 13, 5, 1, 1, 2}, {6, 6, 3, 1, 1, 1}}, false}, true},
    {"2 x 2", {2, 1, 8, {NONE, {5, 5, 2, 1, 1, 1}, {6, 6, 2, 1, 1, 0}}, false}, true},
    {"1-D", {4, 1, 11, {NONE, NONE, {29, 29, 5, 1, 1, 2}}, false}, true},
    {"groups", {2, 3, 9, {NONE, {8, 8, 3, 1, 1, 1}, {9, 9, 3, 1, 1, 1}}, false}, true},
    {"small", {9, 1, 16, {NONE, {2, 2, 3, 1, 1, 1}, {3, 3, 3, 1, 1, 1}}, false}, false},
    {"depthwise", {2, 150, 1, {NONE, {8, 8, 3, 1, 1, 1}, {9, 9, 3, 1, 1, 1}}, false}, false},
    {"stride 2", {2, 1, 12, {NONE, {9, 5, 3, 2, 1, 1}, {8, 4, 3, 2, 1, 1}}, false}, false},
    {"stride 3, dilated", {2, 1, 4, {NONE, {9, 3, 3, 3, 2, 1}, {8, 3, 2, 3, 3, 2}}, false}, false},
    {"3-D", {2, 1, 5, {{4, 4, 3, 1, 1, 1}, {5, 5, 3, 1, 1, 1}, {6, 6, 3, 1, 1, 1}}, false}, false},
    {"transposed", {2, 1, 6, {NONE, {4, 8, 4, 2, 1, 1}, {5, 11, 3, 2, 1, 0}}, true}, false},
    {"transposed, groups", {2, 2, 3, {NONE, {4, 5, 3, 1, 1, 1}, {5, 9, 2, 2, 2, 1}}, true}, false},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static float *draw(int64_t n, uint64_t stream) {
  float *made = laci_alloc((size_t)n, sizeof *made);
  assert_non_null(made);
  for (int64_t at = 0; at < n; at++)
    made[at] = (float)laci_rng_unit_interval(5, stream, (uint64_t)at) - 0.25F;
  return made;
}

static int64_t floats_of(const laci_unfold *u) {
  return u->images * u->groups * u->channels * u->axis[0].in * u->axis[1].in * u->axis[2].in;
}

/* Of the positions that are summed where only some are: every third, and the first twice. */
static int64_t chosen(const laci_unfold *u, int64_t *positions) {
  int64_t n = 0;
  positions[n++] = 0;
  for (int64_t p = 0; p < laci_unfold_n_positions(u); p += 3) positions[n++] = p;
  return n;
}

/* [columns, columns] of one group, and the sum of magnitudes, which says what rounding may do. */
static void define(const laci_unfold *u, int64_t group, const float *a, const float *b, double *sum,
                   double *size) {
  const int64_t columns = laci_unfold_n_columns(u), n = laci_unfold_n_positions(u);
  int64_t *positions = laci_alloc((size_t)n + 1, sizeof *positions);
  assert_non_null(positions);
  const int64_t n_chosen = chosen(u, positions);
  float *x = laci_alloc((size_t)(n * columns), sizeof *x);
  float *y = laci_alloc((size_t)(n * columns), sizeof *y);
  assert_true(x && y);
  unfold_rows(u, group, a, x);
  unfold_rows(u, group, b, y);
  memset(sum, 0, sizeof *sum * (size_t)(columns * columns));
  memset(size, 0, sizeof *size * (size_t)(columns * columns));
  for (int64_t at = 0; at < n + n_chosen; at++) { /* all of them, then some */
    const int64_t p = at < n ? at : positions[at - n];
    for (int64_t i = 0; i < columns; i++) {
      for (int64_t j = 0; j < columns; j++) {
        const double product = (double)x[p * columns + i] * (double)y[p * columns + j];
        sum[i * columns + j] += product;
        size[i * columns + j] += fabs(product);
      }
    }
  }
  laci_free(x);
  laci_free(y);
  laci_free(positions);
}

typedef struct sums {
  const laci_unfold *unfold;
  float *pruned, *dense;
  double *h, *k; /* [groups, columns, columns] */
  int64_t count; /* elements of h */
} sums;

static sums sums_of(const laci_unfold *u) {
  const int64_t columns = laci_unfold_n_columns(u), count = u->groups * columns * columns;
  sums s = {u, draw(floats_of(u), 1), draw(floats_of(u), 2), NULL, NULL, count};
  s.h = laci_alloc((size_t)count, sizeof *s.h);
  s.k = laci_alloc((size_t)count, sizeof *s.k);
  assert_true(s.h && s.k);
  return s;
}

static void sums_clear(sums *s) {
  laci_free(s->pruned);
  laci_free(s->dense);
  laci_free(s->h);
  laci_free(s->k);
}

static void add(sums *s, bool with_dense, bool all, laci_pool *with) {
  const uint64_t bytes = laci_gram_scratch_bytes(s->unfold, with_dense);
  uint8_t *scratch = laci_alloc(bytes + GUARD, 1);
  int64_t *positions =
      laci_alloc((size_t)laci_unfold_n_positions(s->unfold) + 1, sizeof *positions);
  assert_true(scratch && positions);
  memset(scratch, 0xFF, bytes + GUARD); /* NaN, where it is not written before it is read */
  const laci_gram gram = {.unfold = s->unfold,
                          .pruned = s->pruned,
                          .dense = with_dense ? s->dense : NULL,
                          .positions = all ? NULL : positions,
                          .n = chosen(s->unfold, positions),
                          .h = s->h,
                          .k = with_dense ? s->k : NULL,
                          .scratch = scratch};
  laci_gram_add_positions(&gram, with);
  for (int i = 0; i < GUARD; i++) assert_int_equal(scratch[bytes + (uint64_t)i], 0xFF);
  laci_free(scratch);
  laci_free(positions);
}

static void finish(sums *s) {
  const int64_t columns = laci_unfold_n_columns(s->unfold);
  for (int64_t g = 0; g < s->unfold->groups; g++)
    laci_gram_mirror_upper(s->h + g * columns * columns, columns, pool);
}

/* Rounding is that of sums over the image, of which a border is taken: a part of the largest. */
static void compare(const char *name, const double *found, const double *sum, const double *size,
                    int64_t columns) {
  double most = 0;
  for (int64_t at = 0; at < columns * columns; at++) most = fmax(most, size[at]);
  for (int64_t at = 0; at < columns * columns; at++) {
    if (!(fabs(found[at] - sum[at]) <= 1e-6 * most)) {
      fail_msg("%s: %g at %d, %d, wanted %g", name, found[at], (int)(at / columns),
               (int)(at % columns), sum[at]);
    }
  }
}

static void expect(const layer_case *c, const sums *s) {
  const int64_t columns = laci_unfold_n_columns(s->unfold), count = columns * columns;
  double *sum = laci_alloc((size_t)count, sizeof *sum);
  double *size = laci_alloc((size_t)count, sizeof *size);
  assert_true(sum && size);
  for (int64_t g = 0; g < s->unfold->groups; g++) {
    define(s->unfold, g, s->pruned, s->pruned, sum, size);
    compare(c->name, s->h + g * count, sum, size, columns);
    define(s->unfold, g, s->dense, s->pruned, sum, size);
    compare(c->name, s->k + g * count, sum, size, columns);
  }
  laci_free(sum);
  laci_free(size);
}

static void sums_products_of_all_layers(void **state) {
  (void)state;
  for (int i = 0; i < N_CASES; i++) {
    const layer_case *c = &cases[i];
    assert_int_equal(laci_gram_can_correlate(&c->unfold), c->correlates);
    for (int level = 0; level < N_LEVELS; level++) {
      if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
      sums s = sums_of(&c->unfold);
      add(&s, true, true, pool);
      add(&s, true, false, pool);
      finish(&s);
      expect(c, &s);
      sums_clear(&s);
    }
    (void)laci_cpu_limit_level(levels[N_LEVELS - 1]);
  }
}

static void gives_the_same_bytes_for_any_number_of_threads(void **state) {
  (void)state;
  for (int i = 0; i < N_CASES; i++) {
    sums one = sums_of(&cases[i].unfold), more = sums_of(&cases[i].unfold);
    add(&one, true, true, NULL);
    add(&one, true, false, NULL);
    add(&more, true, true, pool);
    add(&more, true, false, pool);
    finish(&one);
    finish(&more);
    assert_memory_equal(one.h, more.h, sizeof *one.h * (size_t)one.count);
    assert_memory_equal(one.k, more.k, sizeof *one.k * (size_t)one.count);
    sums_clear(&one);
    sums_clear(&more);
  }
}

/* What the fit knows a dead input by. */
static void sums_exact_zeros_of_a_channel_of_zeros(void **state) {
  (void)state;
  const laci_unfold *u = NULL;
  for (int i = 0; i < N_CASES && !u; i++) {
    if (cases[i].correlates) u = &cases[i].unfold;
  }
  assert_non_null(u);
  const int64_t pixels = u->axis[1].in * u->axis[2].in, columns = laci_unfold_n_columns(u);
  sums s = sums_of(u);
  for (int64_t image = 0; image < u->images; image++)
    memset(s.pruned + (image * u->channels + 3) * pixels, 0, sizeof *s.pruned * (size_t)pixels);
  add(&s, false, true, pool);
  finish(&s);
  for (int64_t c = 3; c < columns; c += u->channels) {
    for (int64_t j = 0; j < columns; j++) assert_true(s.h[c * columns + j] == 0);
  }
  sums_clear(&s);
}

static int setup(void **state) {
  (void)state;
  lac_error err;
  return laci_pool_create(3, &pool, &err);
}

static int teardown(void **state) {
  (void)state;
  laci_pool_destroy(pool);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sums_products_of_all_layers),
      cmocka_unit_test(gives_the_same_bytes_for_any_number_of_threads),
      cmocka_unit_test(sums_exact_zeros_of_a_channel_of_zeros),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
