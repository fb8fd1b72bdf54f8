/* SPDX-License-Identifier: Apache-2.0
 * The search's parts: the assignment against all permutations, the noise table against libm,
 * cooling, selection. */
#include "permute/search_lap.h"
#include "permute/search_noise.h"
#include "permute/search_score.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/rng.h"

static int64_t least_by_trying(const int32_t *cost, int n, int row, unsigned taken) {
  int64_t least = row == n ? 0 : INT64_MAX;
  for (int j = 0; j < n; j++) {
    if (taken >> j & 1) continue;
    int64_t here = cost[row * n + j] + least_by_trying(cost, n, row + 1, taken | 1U << j);
    least = here < least ? here : least;
  }
  return least;
}

static void fill(laci_lap *lap, const int32_t *cost) {
  for (int i = 0; i < lap->n; i++) {
    memcpy(laci_lap_row(lap, i), cost + i * lap->n, (size_t)lap->n * sizeof *cost);
  }
}

static void expect_assignment(const int32_t *cost, int n, int64_t want) {
  laci_lap lap;
  unsigned taken = 0;
  int64_t sum = 0;
  assert_int_equal(laci_lap_init(&lap, n, NULL), LAC_OK);
  fill(&lap, cost);
  laci_lap_solve(&lap);
  for (int i = 0; i < n; i++) {
    sum += cost[i * n + lap.column_of[i]];
    taken |= 1U << lap.column_of[i];
    assert_int_equal(lap.row_of[lap.column_of[i]], i);
  }
  assert_int_equal(taken, (1U << n) - 1);
  assert_true(sum == want);
  laci_lap_clear(&lap);
}

static void assigns_as_cheaply_as_any_permutation(void **state) {
  (void)state;
  static const uint64_t ranges[] = {2, 3, 10, 1000, LACI_LAP_LIMIT};
  for (uint64_t seed = 0; seed < 4000; seed++) {
    int n = 1 + (int)laci_rng_integer_below(seed, 0, 0, 6);
    uint64_t range = ranges[seed % 5];
    int32_t cost[36];
    for (int i = 0; i < n * n; i++) {
      cost[i] = (int32_t)laci_rng_integer_below(seed, 1, (uint64_t)i, range) - (int32_t)(range / 2);
      if (seed % 3 == 0 && i % (n + 1) == 0)
        cost[i] = -(int32_t)(range / 2); /* the diagonal is hard to beat */
    }
    expect_assignment(cost, n, least_by_trying(cost, n, 0, 0));
  }
}

static void large_assignments_stay_within_32_bits(void **state) {
  (void)state;
  enum { N = 60 };
  static int32_t cost[N * N];
  laci_lap lap;
  assert_int_equal(laci_lap_init(&lap, N, NULL), LAC_OK);
  for (uint64_t seed = 0; seed < 40; seed++) {
    int64_t sum = 0, shifted = 0;
    for (int i = 0; i < N * N; i++) {
      cost[i] =
          laci_rng_integer_below(seed, 0, (uint64_t)i, 2) ? LACI_LAP_LIMIT - 1 : 1 - LACI_LAP_LIMIT;
      if (seed % 2)
        cost[i] = (int32_t)(i / N) * (int32_t)(i % N) * ((LACI_LAP_LIMIT - 1) / (N * N));
    }
    fill(&lap, cost);
    laci_lap_solve(&lap);
    for (int i = 0; i < N; i++) sum += cost[i * N + lap.column_of[i]];
    for (int i = 0; i < N * N; i++) cost[i] /= 2; /* half the costs, the same answer */
    fill(&lap, cost);
    laci_lap_solve(&lap);
    for (int i = 0; i < N; i++) shifted += cost[i * N + lap.column_of[i]];
    assert_true(llabs(sum - 2 * shifted) <= 2 * N);
    for (int i = 0; i < N; i++) {
      int j = lap.column_of[i];
      for (int k = 0; k < N; k++) { /* no row envies: the optimality condition itself, in 64 bits */
        int64_t mine = (int64_t)cost[i * N + j] - lap.price[j],
                other = (int64_t)cost[i * N + k] - lap.price[k];
        assert_true(mine <= other);
      }
    }
  }
  laci_lap_clear(&lap);
}

/* Any hint leads to an optimum, and annealing's own (the prices of the last solution) too. */
static void hints_change_no_cost(void **state) {
  (void)state;
  enum { N = 37 };
  static int32_t cost[N * N];
  laci_lap lap;
  assert_int_equal(laci_lap_init(&lap, N, NULL), LAC_OK);
  for (uint64_t seed = 0; seed < 200; seed++) {
    const int32_t range = seed % 4 == 0 ? 3 : seed % 4 == 1 ? LACI_LAP_LIMIT : 5000;
    int64_t want = 0;
    for (int i = 0; i < N * N; i++) {
      cost[i] =
          (int32_t)laci_rng_integer_below(seed, 0, (uint64_t)i, 2 * (uint64_t)range + 1) - range;
    }
    fill(&lap, cost);
    laci_lap_solve(&lap);
    for (int i = 0; i < N; i++) want += cost[i * N + lap.column_of[i]];
    for (int round = 0; round < 3; round++) {
      int64_t sum = 0;
      for (int j = 0; j < N; j++) {
        int64_t price = round == 0 ? lap.price[j] / 4
                                   : (int64_t)laci_rng_integer_below(seed, 1, (uint64_t)j,
                                                                     2 * LACI_LAP_PRICE_LIMIT + 1) -
                                         LACI_LAP_PRICE_LIMIT;
        lap.price[j] = (int32_t)price;
      }
      fill(&lap, cost);
      laci_lap_solve_hinted(&lap);
      for (int i = 0; i < N; i++) {
        sum += cost[i * N + lap.column_of[i]];
        for (int k = 0; k < N; k++) {
          assert_true((int64_t)cost[i * N + lap.column_of[i]] - lap.price[lap.column_of[i]] <=
                      (int64_t)cost[i * N + k] - lap.price[k]);
        }
      }
      assert_true(sum == want);
    }
  }
  laci_lap_clear(&lap);
}

static void a_row_of_noise_is_a_run_of_the_pool(void **state) {
  (void)state;
  enum { N = 9000 }; /* longer than a run */
  static int32_t cost[N];
  double sum = 0;
  laci_gumbel_noise_subtract(cost, N, INT64_C(1000) << LACI_TEMPERATURE_BITS, 12345);
  for (int i = 0; i < N; i++) sum -= cost[i];
  /* 1000 times Euler's constant, give or take three deviations of the mean */
  assert_true(fabs(sum / N - 577.2) < 3 * 1283 / sqrt(N));
  laci_gumbel_noise_subtract(cost, N, 0, 1);
  int32_t before = cost[77];
  laci_gumbel_noise_subtract(cost, N, LACI_TEMPERATURE_LIMIT, 2);
  assert_true(labs((long)before - cost[77]) <= 1 << 26);
}

static void noise_has_the_quantiles_of_gumbel(void **state) {
  (void)state;
  const int16_t *table = laci_gumbel_noise_table();
  for (int i = 0; i < 1 << LACI_NOISE_BITS; i++) {
    double want = -log(-log((i + 0.5) / (1 << LACI_NOISE_BITS))) * LACI_NOISE_ONE;
    assert_true(fabs(table[i] - want) <= 1.01);
  }
}

static void noise_scales_with_the_temperature(void **state) {
  (void)state;
  enum { N = 1001 };
  static int32_t cold[N], hot[N], hottest[N];
  laci_gumbel_noise_subtract(cold, N, INT64_C(100) << LACI_TEMPERATURE_BITS, 7);
  laci_gumbel_noise_subtract(hot, N, INT64_C(100000) << LACI_TEMPERATURE_BITS, 7);
  laci_gumbel_noise_subtract(hottest, N, LACI_TEMPERATURE_LIMIT, 7);
  double mean = 0;
  for (int i = 0; i < N; i++) {
    assert_true(fabs(hot[i] / 1000.0 - cold[i]) <= 1.1);
    assert_true(hottest[i] <= 1 << 27 && hottest[i] >= -(1 << 27));
    mean -= cold[i] / 100.0 / N;
  }
  assert_true(fabs(mean - 0.577) < 0.15); /* Euler's constant */
}

static void cooling_follows_the_exponential(void **state) {
  (void)state;
  for (int64_t x = -16384; x <= 16384; x += 127) {
    double want = 1e9 * exp(-(double)x / 65536);
    assert_true(fabs((double)laci_cool_temperature(1000000000, x) - want) < 3e5);
  }
}

static void selection_puts_the_largest_first(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 300; seed++) {
    double values[200], sorted[200];
    int n = 1 + (int)laci_rng_integer_below(seed, 0, 0, 200),
        k = (int)laci_rng_integer_below(seed, 0, 1, (uint64_t)n + 1);
    for (int i = 0; i < n; i++)
      values[i] = (double)laci_rng_integer_below(seed, 1, (uint64_t)i, seed % 2 ? 5 : 100000);
    memcpy(sorted, values, sizeof values);
    for (int i = 1; i < n; i++) {
      for (int at = i; at > 0 && sorted[at] > sorted[at - 1]; at--) {
        double moving = sorted[at];
        sorted[at] = sorted[at - 1];
        sorted[at - 1] = moving;
      }
    }
    double want = 0, sum = 0;
    for (int i = 0; i < k; i++) want += sorted[i];
    laci_select_largest(values, n, k);
    for (int i = 0; i < k; i++) sum += values[i];
    assert_true(sum == want); /* integers */
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(assigns_as_cheaply_as_any_permutation),
      cmocka_unit_test(large_assignments_stay_within_32_bits),
      cmocka_unit_test(hints_change_no_cost),
      cmocka_unit_test(a_row_of_noise_is_a_run_of_the_pool),
      cmocka_unit_test(noise_has_the_quantiles_of_gumbel),
      cmocka_unit_test(noise_scales_with_the_temperature),
      cmocka_unit_test(cooling_follows_the_exponential),
      cmocka_unit_test(selection_puts_the_largest_first),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
