/* SPDX-License-Identifier: Apache-2.0
 * permute/strategy_exact against all orders there are, on small problems of every shape: whole and
 * partial blocks, several weights, ties, zeros, equal columns. Larger ones are held against the
 * other strategies and against themselves on several threads. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/rng.h"
#include "cpu/pool.h"
#include "permute/strategy.h"

enum { MOST_CHANNELS = 24, MOST_ROWS = 256 };

typedef enum filling { SPREAD, FEW_VALUES, MOSTLY_ZEROS, ALL_ZEROS, EQUAL_COLUMNS } filling;
enum { N_FILLINGS = EQUAL_COLUMNS + 1 };

/* One or two weights with the channels in place. */
typedef struct fixture {
  laci_problem problem;
  laci_slice slices[2];
  int32_t column[MOST_CHANNELS];
  float weights[2][MOST_ROWS * MOST_CHANNELS];
  laci_cuts cuts;
} fixture;

static float element(filling how, uint64_t seed, int row, int column) {
  if (how == EQUAL_COLUMNS) column /= 2;
  double u = laci_rng_unit_interval(seed, (uint64_t)row, (uint64_t)column) - 0.5;
  switch (how) {
    case FEW_VALUES: return (float)floor(u * 6);
    case MOSTLY_ZEROS: return u > 0.2 ? (float)u : 0;
    case ALL_ZEROS: return 0;
    default: return (float)u;
  }
}

static fixture *make(int n, laci_pattern pattern, int rows, int n_slices, filling how,
                     uint64_t seed) {
  fixture *f = calloc(1, sizeof *f);
  assert_non_null(f);
  f->problem = (laci_problem){.name = "class",
                              .n_channels = n,
                              .pattern = pattern,
                              .n_slices = n_slices,
                              .slices = f->slices};
  for (int c = 0; c < n; c++) f->column[c] = c;
  for (int s = 0; s < n_slices; s++) {
    for (int i = 0; i < rows * n; i++) {
      f->weights[s][i] = element(how, seed + (uint64_t)s, i / n, i % n);
    }
    laci_slice *slice = &f->slices[s];
    slice->weight = (laci_weight_view){
        .name = "w", .dtype = LAC_DTYPE_F32, .bytes = (const uint8_t *)f->weights[s]};
    slice->weight.outer = slice->outer_end = rows;
    slice->weight.columns = slice->weight.run = n;
    slice->weight.inner = 1;
    slice->column = f->column;
  }
  assert_int_equal(laci_cuts_init(&f->cuts, &f->problem, NULL), LAC_OK);
  assert_true(laci_cuts_are_plain(&f->cuts));
  return f;
}

static void drop(fixture *f) {
  laci_cuts_clear(&f->cuts);
  free(f);
}

static double kept_by(const fixture *f, const int32_t *order) {
  double kept = 0;
  assert_int_equal(laci_cuts_score_order(&f->cuts, order, NULL, &kept, NULL), LAC_OK);
  return kept;
}

static void expect_permutation(const int32_t *order, int n) {
  uint32_t seen = 0;
  for (int j = 0; j < n; j++) {
    assert_in_range(order[j], 0, n - 1);
    seen |= 1U << order[j];
  }
  assert_int_equal(seen, (1U << n) - 1);
}

static laci_task solve(const fixture *f, int threads, int32_t *order) {
  laci_pool *pool = NULL;
  for (int j = 0; j < f->cuts.n_channels; j++) order[j] = j;
  assert_int_equal(laci_pool_create(threads, &pool, NULL), LAC_OK);
  laci_task task = {.cuts = &f->cuts, .pool = pool, .order = order};
  assert_int_equal(laci_strategy_exact.run(&task, NULL), LAC_OK);
  laci_pool_destroy(pool);
  expect_permutation(order, f->cuts.n_channels);
  return task;
}

/* What the blocks of a row keep, by sorting. */
static double kept_of_orders(const fixture *f, const int32_t *order) {
  const int n = f->cuts.n_channels, m = f->cuts.pattern.m;
  double kept = 0;
  for (int s = 0; s < f->problem.n_slices; s++) {
    for (int64_t row = 0; row < f->slices[s].outer_end; row++) {
      for (int begin = 0; begin < n; begin += m) {
        bool taken[MOST_CHANNELS] = {false};
        for (int k = 0; k < f->cuts.pattern.n; k++) {
          int at = -1;
          double most = -1;
          for (int j = begin; j < begin + m && j < n; j++) {
            double x = fabs((double)f->weights[s][row * n + order[j]]);
            if (taken[j] || x <= most) continue;
            at = j;
            most = x;
          }
          if (at < 0) break;
          taken[at] = true;
          kept += most;
        }
      }
    }
  }
  return kept;
}

/* All orders whose blocks ascend: others keep the same. */
static double best_of_orders(const fixture *f, int32_t *order, int at) {
  const int n = f->cuts.n_channels;
  if (at == n) return kept_of_orders(f, order);
  double best = 0;
  for (int i = at; i < n; i++) {
    int32_t chosen = order[i], here = order[at];
    if (at % f->cuts.pattern.m != 0 && chosen < order[at - 1]) continue;
    order[i] = here;
    order[at] = chosen;
    double kept = best_of_orders(f, order, at + 1);
    best = kept > best ? kept : best;
    order[at] = here;
    order[i] = chosen;
  }
  return best;
}

static const struct {
  int n;
  laci_pattern pattern;
} small[] = {{8, {2, 4}}, {9, {2, 4}}, {7, {2, 4}}, {4, {2, 4}}, {3, {2, 4}}, {1, {1, 2}},
             {8, {1, 2}}, {7, {1, 2}}, {9, {2, 3}}, {8, {1, 3}}, {9, {1, 4}}, {8, {3, 4}},
             {9, {4, 8}}, {9, {2, 8}}, {9, {3, 5}}, {8, {5, 6}}, {9, {8, 16}}};
enum { N_SMALL = sizeof small / sizeof *small };

static void finds_what_trying_all_orders_finds(void **state) {
  (void)state;
  for (int k = 0; k < N_SMALL; k++) {
    for (int how = 0; how < N_FILLINGS; how++) {
      const int rows = 1 + (int)laci_rng_integer_below(5, (uint64_t)k, (uint64_t)how, 6);
      fixture *f = make(small[k].n, small[k].pattern, rows, 1 + how % 2, (filling)how,
                        (uint64_t)(100 * k + how));
      int32_t order[MOST_CHANNELS], tried[MOST_CHANNELS];
      laci_task task = solve(f, 1, order);
      for (int j = 0; j < small[k].n; j++) tried[j] = j;
      double got = kept_of_orders(f, order), want = best_of_orders(f, tried, 0);
      assert_true(task.proven && task.iterations == 1);
      if (!(fabs(got - want) <= 1e-12 * want)) {
        print_error("%d channels, %d:%d, filling %d: kept %.17g, wanted %.17g\n", small[k].n,
                    small[k].pattern.n, small[k].pattern.m, how, got, want);
        fail();
      }
      drop(f);
    }
  }
}

/* Scores that integers of 16 bits cannot tell apart decide here. */
static void small_differences_next_to_large_weights_count(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 20; seed++) {
    fixture *f = make(8, (laci_pattern){2, 4}, 3, 1, SPREAD, seed);
    int32_t order[MOST_CHANNELS], tried[MOST_CHANNELS];
    for (int i = 0; i < 16; i++) f->weights[0][i] *= 1e-7F;
    solve(f, 1, order);
    for (int j = 0; j < 8; j++) tried[j] = j;
    double got = kept_of_orders(f, order), want = best_of_orders(f, tried, 0);
    assert_true(fabs(got - want) <= 1e-15 * want);
    drop(f);
  }
}

/* Channels in random order have the same optimum. */
static void the_optimum_does_not_depend_on_where_channels_begin(void **state) {
  (void)state;
  static const struct {
    int n;
    laci_pattern pattern;
  } cases[] = {{16, {2, 4}}, {20, {2, 4}}, {19, {2, 4}}, {18, {3, 6}}, {16, {4, 8}}, {22, {1, 2}}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    const int n = cases[k].n, rows = 37;
    fixture *f = make(n, cases[k].pattern, rows, 1, SPREAD, k), *g = NULL;
    int32_t order[MOST_CHANNELS], shuffled[MOST_CHANNELS];
    solve(f, 1, order);
    double want = kept_by(f, order);
    for (int j = 0; j < n; j++) shuffled[j] = j;
    for (int j = n - 1; j > 0; j--) {
      int other = (int)laci_rng_integer_below(9, k, (uint64_t)j, (uint64_t)j + 1);
      int32_t channel = shuffled[j];
      shuffled[j] = shuffled[other];
      shuffled[other] = channel;
    }
    g = make(n, cases[k].pattern, rows, 1, SPREAD, k);
    for (int i = 0; i < rows * n; i++) {
      g->weights[0][i] = f->weights[0][i / n * n + shuffled[i % n]];
    }
    solve(g, 1, order);
    assert_true(fabs(kept_by(g, order) - want) <= 1e-12 * want);
    drop(g);
    drop(f);
  }
}

static void any_number_of_threads_finds_the_same_order(void **state) {
  (void)state;
  static const struct {
    int n, rows;
    laci_pattern pattern;
  } cases[] = {{16, 40, {2, 4}}, {20, 256, {2, 4}}, {22, 100, {2, 4}}, {16, 200, {4, 8}}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    fixture *f = make(cases[k].n, cases[k].pattern, cases[k].rows, 2, FEW_VALUES, k);
    int32_t want[MOST_CHANNELS] = {0}, order[MOST_CHANNELS] = {0};
    solve(f, 1, want);
    for (int threads = 2; threads <= 3; threads++) {
      solve(f, threads, order);
      assert_memory_equal(order, want, sizeof order);
    }
    drop(f);
  }
}

static void twenty_four_channels_beat_every_other_search(void **state) {
  (void)state;
  fixture *f = make(24, (laci_pattern){2, 4}, 40, 1, SPREAD, 1);
  int32_t order[MOST_CHANNELS], other[MOST_CHANNELS];
  laci_measure measure;
  assert_int_equal(laci_cuts_measure_weights(&f->cuts, NULL, &measure, NULL), LAC_OK);
  assert_true(solve(f, 2, order).proven);
  double best = kept_by(f, order);
  const laci_strategy *const others[] = {&laci_strategy_assign, &laci_strategy_swap,
                                         &laci_strategy_stripes};
  for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
    for (int j = 0; j < 24; j++) other[j] = j;
    laci_matrix matrices[1][2] = {0};
    laci_task task = {.cuts = &f->cuts, .measure = &measure, .matrices = matrices, .order = other};
    task.effort = LACI_EFFORT_NORMAL;
    assert_int_equal(others[k]->run(&task, NULL), LAC_OK);
    laci_matrix_clear(&matrices[0][LACI_I16]);
    laci_matrix_clear(&matrices[0][LACI_U8]);
    assert_true(kept_by(f, other) <= best * (1 + 1e-12));
  }
  drop(f);
}

static void an_interrupted_search_leaves_the_order_alone(void **state) {
  (void)state;
  fixture *f = make(16, (laci_pattern){2, 4}, 40, 1, SPREAD, 1);
  int32_t order[MOST_CHANNELS];
  lac_interrupt(true);
  assert_false(solve(f, 1, order).proven);
  lac_interrupt(false);
  for (int j = 0; j < 16; j++) assert_int_equal(order[j], j);
  drop(f);
}

static void failed_allocations_are_errors(void **state) {
  (void)state;
  fixture *f = make(14, (laci_pattern){2, 4}, 4, 1, SPREAD, 1);
  int32_t order[MOST_CHANNELS];
  for (int j = 0; j < 14; j++) order[j] = j;
  lac_status st = LAC_NO_MEMORY;
  for (long at = 1; st; at++) {
    laci_task task = {.cuts = &f->cuts, .order = order};
    laci_memory_fail_from(at);
    st = laci_strategy_exact.run(&task, NULL);
    laci_memory_fail_from(0);
    assert_true(st == LAC_OK || st == LAC_NO_MEMORY);
    assert_true(task.proven == (st == LAC_OK) && at < 50);
  }
  drop(f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(finds_what_trying_all_orders_finds),
      cmocka_unit_test(small_differences_next_to_large_weights_count),
      cmocka_unit_test(the_optimum_does_not_depend_on_where_channels_begin),
      cmocka_unit_test(any_number_of_threads_finds_the_same_order),
      cmocka_unit_test(twenty_four_channels_beat_every_other_search),
      cmocka_unit_test(an_interrupted_search_leaves_the_order_alone),
      cmocka_unit_test(failed_allocations_are_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
