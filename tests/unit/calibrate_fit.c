/* SPDX-License-Identifier: Apache-2.0
 * calibrate/fit: masks, exact weights and errors of small layers against their definitions, in
 * plain loops over every input that was summed. */
#include "calibrate/fit.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "cpu/pool.h"
#include "kernel/linear/linear.h"
#include "lacuna/log.h"
#include "support/fit_layer.h"

/* ---- definitions ---- */

/* Over all inputs, undamped. */
static double error_of(const layer *l, const double *weight, double *energy) {
  const int columns = l->fit.columns;
  double sum = 0;
  *energy = 0;
  for (int p = 0; p < l->n_inputs; p++) {
    const double *x = l->pruned + p * columns, *d = l->fit.k ? l->dense + p * columns : x;
    for (int row = 0; row < l->fit.rows; row++) {
      double was = 0, is = 0;
      for (int c = 0; c < columns; c++) {
        was += l->weight[row * columns + c] * d[c];
        is += weight[row * columns + c] * x[c];
      }
      sum += (was - is) * (was - is);
      *energy += was * was;
    }
  }
  return sum;
}

/* What is minimized: <w A, w> - 2 <w, G> of one row, A = H + d I, G = W_d (K + d I). */
static double damped_of(const layer *l, int row, const double *w) {
  const int columns = l->fit.columns;
  const double d = damping_of(l), *k = l->fit.k ? l->k : l->h, *dense = l->weight + row * columns;
  double sum = 0;
  for (int i = 0; i < columns; i++) {
    for (int j = 0; j < columns; j++) {
      sum += w[i] * w[j] * l->h[i * columns + j] - 2 * w[j] * dense[i] * k[i * columns + j];
    }
    sum += d * w[i] * w[i] - 2 * d * w[i] * dense[i];
  }
  return sum;
}

/* The least of damped_of over w[s], by Gauss-Jordan elimination with pivots. */
static void solve_row(const layer *l, int row, const uint8_t *mask, double *w) {
  enum { WIDE = MOST_COLUMNS + 1 };
  static double a[MOST_COLUMNS * WIDE];
  const int columns = l->fit.columns;
  const double d = damping_of(l), *k = l->fit.k ? l->k : l->h;
  int s[MOST_COLUMNS], n = 0;
  for (int c = 0; c < columns; c++) {
    w[c] = 0;
    if (mask[c]) s[n++] = c;
  }
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) {
      a[i * WIDE + j] = l->h[s[i] * columns + s[j]] + (i == j ? d : 0);
    }
    a[i * WIDE + n] = d * l->weight[row * columns + s[i]];
    for (int c = 0; c < columns; c++) {
      a[i * WIDE + n] += l->weight[row * columns + c] * k[c * columns + s[i]];
    }
  }
  for (int i = 0; i < n; i++) {
    int pivot = i;
    for (int j = i + 1; j < n; j++) {
      if (fabs(a[j * WIDE + i]) > fabs(a[pivot * WIDE + i])) pivot = j;
    }
    for (int c = 0; c <= n; c++) {
      const double swapped = a[i * WIDE + c];
      a[i * WIDE + c] = a[pivot * WIDE + c];
      a[pivot * WIDE + c] = swapped;
    }
    for (int j = 0; j < n; j++) {
      const double part = j == i ? 0 : a[j * WIDE + i] / a[i * WIDE + i];
      for (int c = i; c <= n && j != i; c++) a[j * WIDE + c] -= part * a[i * WIDE + c];
    }
  }
  for (int i = 0; i < n; i++) w[s[i]] = a[i * WIDE + n] / a[i * WIDE + i];
}

static void expect_pattern(const laci_fit *fit, const uint8_t *mask, const double *weight) {
  for (int at = 0; at < fit->rows * fit->columns; at++) {
    int wide, kept = 0, first = block_of(fit, at % fit->columns, &wide);
    const uint8_t *block = mask + at / fit->columns * fit->columns + first;
    for (int i = 0; i < wide; i++) kept += block[i];
    assert_int_equal(kept, wide < fit->pattern.n ? wide : fit->pattern.n);
    assert_true(mask[at] == 0 || mask[at] == 1);
    if (!mask[at]) assert_true(weight[at] == 0);
    assert_true(isfinite(weight[at]));
  }
}

static double error_by_fit(const layer *l, const double *weight, double energy) {
  lac_error err = {0};
  double error = NAN;
  if (laci_fit_compute_error(&l->fit, weight, energy, NULL, &error, &err)) fail_msg("%s", err.text);
  return error;
}

/* The best of all masks of a row, each solved: no score can be below, and magnitude's mask, solved,
 * is not far above. */
static double least_of_row(const layer *l, int row, double *w) {
  const laci_fit *fit = &l->fit;
  double least = INFINITY;
  for (unsigned bits = 0; bits < 1U << fit->columns; bits++) {
    uint8_t tried[MOST_COLUMNS];
    bool fits = true;
    for (int c = 0; c < fit->columns; c++) tried[c] = (uint8_t)(bits >> c & 1);
    for (int c = 0; c < fit->columns && fits; c++) {
      int wide, kept = 0, first = block_of(fit, c, &wide);
      for (int j = 0; j < wide; j++) kept += tried[first + j];
      fits = kept == (wide < fit->pattern.n ? wide : fit->pattern.n);
    }
    if (!fits) continue;
    solve_row(l, row, tried, w);
    const double found = damped_of(l, row, w);
    if (found < least) least = found;
  }
  return least;
}

/* ---- tests ---- */

static layer l;
static uint8_t mask[MOST_WEIGHTS];
static double weight[MOST_WEIGHTS], solved[MOST_WEIGHTS];

static void keeps_the_pattern_with_every_score(void **state) {
  (void)state;
  for (int at = 0; laci_score_at(at); at++) {
    const laci_score *score = laci_score_at(at);
    assert_ptr_equal(laci_score_find(laci_score_name(score)), score);
    assert_true(strlen(laci_score_title(score)) > 0 && strlen(laci_score_paper(score)) > 0);
    for (int i = 0; i < N_SHAPES; i++) {
      layer_create(&l, &shapes[i], 5);
      choose(&l, laci_score_name(score), mask, weight);
      expect_pattern(&l.fit, mask, weight);
      layer_clear(&l);
    }
  }
  assert_null(laci_score_find("largest"));
}

static void solves_exactly_on_the_support(void **state) {
  (void)state;
  for (int i = 0; i < N_SHAPES; i++) {
    layer_create(&l, &shapes[i], 7);
    choose(&l, "magnitude", mask, weight);
    solve(&l, mask, solved);
    expect_pattern(&l.fit, mask, solved);
    for (int row = 0; row < l.fit.rows; row++) {
      double wanted[MOST_COLUMNS];
      const int first = row * l.fit.columns;
      solve_row(&l, row, mask + first, wanted);
      for (int c = 0; c < l.fit.columns; c++) expect_near(solved[first + c], wanted[c], 1e-8);
    }
    layer_clear(&l);
  }
}

static void solves_any_mask(void **state) {
  (void)state;
  layer_create(&l, &shapes[4], 8);
  const int columns = l.fit.columns;
  memset(mask, 0, sizeof mask);
  memset(mask + columns, 1, (size_t)columns); /* row 0: nothing, row 1: all, row 2: one */
  mask[2 * columns + 3] = 1;
  solve(&l, mask, solved);
  for (int row = 0; row < l.fit.rows; row++) {
    double wanted[MOST_COLUMNS];
    solve_row(&l, row, mask + row * columns, wanted);
    for (int c = 0; c < columns; c++) expect_near(solved[row * columns + c], wanted[c], 1e-8);
  }
  layer_clear(&l);
}

static void measures_errors_as_over_the_inputs(void **state) {
  (void)state;
  for (int i = 0; i < N_SHAPES; i++) {
    double energy;
    layer_create(&l, &shapes[i], 9);
    choose(&l, "magnitude", mask, weight);
    const double wanted = error_of(&l, weight, &energy);
    expect_near(error_by_fit(&l, weight, energy), wanted, 1e-9);
    if (!l.fit.k) expect_near(error_by_fit(&l, l.weight, 0), 0, 0);
    layer_clear(&l);
  }
}

static void is_never_below_the_best_of_all_masks(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) {
    layer_create(&l, &shapes[i], 10);
    const int columns = l.fit.columns;
    for (int row = 0; row < l.fit.rows; row++) {
      double tried[MOST_COLUMNS];
      const double least = least_of_row(&l, row, tried);
      const double none = damped_of(&l, row, (double[MOST_COLUMNS]){0}); /* 0: all weights gone */
      for (int at = 0; laci_score_at(at); at++) {
        choose(&l, laci_score_name(laci_score_at(at)), mask, weight);
        solve(&l, mask, solved);
        const double found = damped_of(&l, row, solved + row * columns);
        assert_true(found >= least - 1e-9 * fabs(least));
        assert_true(found <= damped_of(&l, row, weight + row * columns) + 1e-9 * fabs(least));
        assert_true(found < none);
      }
    }
    layer_clear(&l);
  }
}

static void scores_wanda_as_its_paper(void **state) {
  (void)state;
  for (int i = 0; i < N_SHAPES; i++) {
    double saliency[MOST_WEIGHTS];
    lac_error err = {0};
    layer_create(&l, &shapes[i], 12);
    const int columns = l.fit.columns;
    choose(&l, "wanda", mask, weight);
    assert_int_equal(
        laci_fit_compute_saliency(&l.fit, laci_score_find("wanda"), NULL, saliency, &err), 0);
    for (int at = 0; at < l.fit.rows * columns; at++) {
      double squares = 0;
      for (int p = 0; p < l.n_inputs; p++) {
        squares += l.pruned[p * columns + at % columns] * l.pruned[p * columns + at % columns];
      }
      expect_near(saliency[at], fabs(l.weight[at]) * sqrt(squares), 1e-12);
    }
    for (int at = 0; at < l.fit.rows * columns; at++) {
      int wide, rank = 0, first = at - at % columns + block_of(&l.fit, at % columns, &wide);
      for (int j = first; j < first + wide; j++) rank += saliency[j] > saliency[at];
      assert_int_equal(mask[at], rank < l.fit.pattern.n);
      assert_true(weight[at] == (mask[at] ? l.weight[at] : 0));
    }
    layer_clear(&l);
  }
}

static void keeps_the_lowest_column_of_equal_weights(void **state) {
  (void)state;
  layer_create(&l, &shapes[0], 3);
  for (int i = 0; i < l.fit.rows * l.fit.columns; i++) l.weight[i] = i % 2 ? -0.5 : 0.5;
  choose(&l, "magnitude", mask, weight);
  for (int i = 0; i < l.fit.rows * l.fit.columns; i++) assert_int_equal(mask[i], i % 4 < 2);
  layer_clear(&l);
}

/* Beyond 512 columns of a support the factor is one of floats, and what is solved is refined; an H
 * that floats take for singular gets a factor of doubles. Checked is what defines the solution:
 * nothing is left of G[s] - w A[s, s]. */
static void refines_large_supports(void **state) {
  enum { N = 1200, ROWS = 3, INPUTS = 20 };
  static double h[N * N], x[INPUTS * N], w[ROWS * N], out[ROWS * N];
  static uint8_t kept[ROWS * N];
  (void)state;
  for (int i = 0; i < INPUTS * N; i++) x[i] = noise(21, (uint64_t)i) * (1 + i % 7);
  for (int i = 0; i < ROWS * N; i++) w[i] = noise(22, (uint64_t)i);
  for (int p = 0; p < INPUTS; p++) {
    for (int i = 0; i < N; i++) {
      for (int j = 0; j < N; j++) h[i * N + j] += x[p * N + i] * x[p * N + j];
    }
  }
  laci_fit fit = {.name = "large", .rows = ROWS, .columns = N, .channels = N, .pattern = {2, 4}};
  fit.h = h;
  fit.weight = w;
  fit.positions = INPUTS;
  const double dampings[] = {0.01,
                             1e-10}; /* of the mean of the diagonal: the second is no float's */
  for (int i = 0; i < 2; i++) {
    lac_error err = {0};
    double d = 0;
    fit.damping = dampings[i];
    for (int c = 0; c < N; c++) d += h[c * N + c] * fit.damping / N;
    assert_int_equal(
        laci_fit_choose_mask(&fit, laci_score_find("magnitude"), NULL, kept, out, &err), 0);
    kept[0] ^= 1;                      /* no pattern's mask: row 0 has a support of its own size */
    memcpy(kept + N, kept + 2 * N, N); /* rows 1 and 2 share theirs */
    assert_int_equal(laci_fit_solve_weights(&fit, kept, NULL, out, &err), 0);
    for (int row = 0; row < ROWS; row++) {
      double most = 0, most_g = 0;
      for (int c = 0; c < N; c++) {
        double g = d * w[row * N + c], rest = -d * out[row * N + c];
        for (int j = 0; j < N; j++) {
          g += w[row * N + j] * h[j * N + c];
          rest -= out[row * N + j] * h[j * N + c];
        }
        if (!kept[row * N + c]) continue;
        most = fmax(most, fabs(rest + g));
        most_g = fmax(most_g, fabs(g));
      }
      if (!(most <= 1e-7 * most_g)) fail_msg("row %d: %g of %g is left", row, most, most_g);
    }
  }
}

/* Inputs that are always 0, all of them in the end: nothing is divided by 0, and weights that
 * no output depends on stay what they were. */
static void lives_with_dead_inputs(void **state) {
  (void)state;
  for (int at = 0; laci_score_at(at); at++) {
    for (int dead = 1; dead <= 12; dead += 11) {
      layer_init(&l, &shapes[1], 13);
      l.fit.k = l.k;
      for (int p = 0; p < l.n_inputs; p++) {
        for (int c = 0; c < dead; c++) {
          l.pruned[p * 12 + c] = 0;
          l.dense[p * 12 + c] = 0;
        }
      }
      layer_sum(&l);
      choose(&l, laci_score_name(laci_score_at(at)), mask, weight);
      expect_pattern(&l.fit, mask, weight);
      solve(&l, mask, solved);
      expect_pattern(&l.fit, mask, solved);
      for (int i = 0; i < l.fit.rows * 12; i++) {
        if (i % 12 < dead && mask[i]) expect_near(solved[i], l.weight[i], 1e-9);
      }
      layer_clear(&l);
    }
  }
}

static void names_what_is_not_finite(void **state) {
  (void)state;
  lac_error err = {0};
  layer_create(&l, &shapes[0], 14);
  l.h[9] = NAN;
  assert_int_equal(laci_fit_solve_weights(&l.fit, mask, NULL, solved, &err), LAC_BAD_VALUE);
  assert_string_equal(err.text,
                      "two blocks: sum of products[1, 1]: found NaN, wanted a finite number");
  layer_sum(&l);
  l.k[8] = -INFINITY;
  assert_int_equal(laci_fit_choose_mask(&l.fit, laci_score_find("wanda"), NULL, mask, solved, &err),
                   LAC_BAD_VALUE);
  assert_non_null(strstr(err.text, "dense inputs[1, 0]: found an infinity"));
  layer_sum(&l);
  l.weight[0] = INFINITY;
  double error;
  assert_int_equal(laci_fit_compute_error(&l.fit, solved, 1, NULL, &error, &err), LAC_BAD_VALUE);
  l.weight[0] = 1;
  l.fit.channels = 3;
  assert_int_equal(laci_fit_solve_weights(&l.fit, mask, NULL, solved, &err), LAC_BAD_SHAPE);
  l.fit.channels = 8;
  l.fit.h = NULL;
  assert_int_equal(laci_fit_solve_weights(&l.fit, mask, NULL, solved, &err), LAC_BAD_ARGUMENT);
  choose(&l, "magnitude", mask, weight); /* which needs no sums */
  layer_clear(&l);
}

static void gives_the_same_bytes_for_any_number_of_threads(void **state) {
  (void)state;
  laci_pool *pool = NULL;
  lac_error err = {0};
  assert_int_equal(laci_pool_create(3, &pool, &err), LAC_OK);
  for (int at = 0; laci_score_at(at); at++) {
    for (int i = 0; i < N_SHAPES; i++) {
      static uint8_t again[MOST_WEIGHTS];
      static double other[MOST_WEIGHTS], exact[MOST_WEIGHTS];
      layer_create(&l, &shapes[i], 15);
      const size_t count = (size_t)(l.fit.rows * l.fit.columns);
      choose(&l, laci_score_name(laci_score_at(at)), mask, weight);
      solve(&l, mask, solved);
      assert_int_equal(laci_fit_choose_mask(&l.fit, laci_score_at(at), pool, again, other, &err),
                       0);
      assert_memory_equal(again, mask, count);
      assert_memory_equal(other, weight, count * sizeof *other);
      assert_int_equal(laci_fit_solve_weights(&l.fit, again, pool, exact, &err), 0);
      assert_memory_equal(exact, solved, count * sizeof *exact);
      layer_clear(&l);
    }
  }
  laci_pool_destroy(pool);
}

static void says_when_there_is_no_memory(void **state) {
  (void)state;
  layer_create(&l, &shapes[4], 16);
  for (int at = 0; laci_score_at(at); at++) {
    lac_error err = {0};
    for (long n = 1;; n++) {
      double error;
      laci_memory_fail_from(n);
      lac_status st = laci_fit_choose_mask(&l.fit, laci_score_at(at), NULL, mask, weight, &err);
      if (!st) st = laci_fit_solve_weights(&l.fit, mask, NULL, solved, &err);
      if (!st) st = laci_fit_compute_error(&l.fit, solved, 1e9, NULL, &error, &err);
      const bool pending = laci_memory_is_failure_pending();
      laci_memory_fail_from(0);
      if (pending) {
        assert_int_equal(st, LAC_OK);
        break;
      }
      assert_int_equal(st, LAC_NO_MEMORY);
    }
  }
  layer_clear(&l);
}

static void ends_when_interrupted(void **state) {
  (void)state;
  lac_error err = {0};
  layer_create(&l, &shapes[4], 18);
  choose(&l, "magnitude", mask, weight);
  lac_interrupt(true);
  assert_int_equal(laci_fit_solve_weights(&l.fit, mask, NULL, solved, &err), LAC_INTERRUPTED);
  const char *const long_ones[] = {"alps", "obs"};
  for (int i = 0; i < 2; i++) {
    assert_int_equal(
        laci_fit_choose_mask(&l.fit, laci_score_find(long_ones[i]), NULL, mask, weight, &err),
        LAC_INTERRUPTED);
    assert_string_equal(err.text, "taps with a partial block of two: interrupted");
  }
  lac_interrupt(false);
  solve(&l, mask, solved);
  layer_clear(&l);
}

/* What is told beforehand is at least what is taken, and not ten times that. */
static void tells_its_memory(void **state) {
  (void)state;
  layer_create(&l, &shapes[9], 17);
  for (int at = 0; laci_score_at(at); at++) {
    const uint64_t told = laci_fit_memory_bytes(&l.fit, laci_score_at(at), 1);
    const size_t before = laci_memory_total_allocated();
    choose(&l, laci_score_name(laci_score_at(at)), mask, weight);
    const size_t chosen = laci_memory_total_allocated() - before;
    solve(&l, mask, solved);
    const size_t both = laci_memory_total_allocated() - before,
                 most = chosen > both - chosen ? chosen : both - chosen;
    if (!(told >= most && told <= 2 * most + 4096)) {
      fail_msg("%s: %llu bytes were told, %zu taken", laci_score_name(laci_score_at(at)),
               (unsigned long long)told, most);
    }
  }
  layer_clear(&l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(keeps_the_pattern_with_every_score),
      cmocka_unit_test(solves_exactly_on_the_support),
      cmocka_unit_test(solves_any_mask),
      cmocka_unit_test(measures_errors_as_over_the_inputs),
      cmocka_unit_test(is_never_below_the_best_of_all_masks),
      cmocka_unit_test(scores_wanda_as_its_paper),
      cmocka_unit_test(keeps_the_lowest_column_of_equal_weights),
      cmocka_unit_test(refines_large_supports),
      cmocka_unit_test(lives_with_dead_inputs),
      cmocka_unit_test(names_what_is_not_finite),
      cmocka_unit_test(gives_the_same_bytes_for_any_number_of_threads),
      cmocka_unit_test(says_when_there_is_no_memory),
      cmocka_unit_test(ends_when_interrupted),
      cmocka_unit_test(tells_its_memory),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  laci_linear_use_plain(true); /* and without OpenBLAS */
  return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
