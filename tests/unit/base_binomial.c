/* SPDX-License-Identifier: Apache-2.0
 * Bounds on a rate: held to sums that are written out, to closed forms and to published values. */
#include "base/binomial.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

/* The probability of k or fewer of n, by products that small n allow. */
static double tail(int k, int n, double p) {
  double sum = 0;
  for (int i = 0; i <= k; i++) {
    double term = 1;
    for (int j = 1; j <= i; j++) term *= (double)(n - i + j) / j * p;
    for (int j = i; j < n; j++) term *= 1 - p;
    sum += term;
  }
  return sum;
}

static bool near(double got, double want, double tolerance) {
  return fabs(got - want) <= tolerance;
}

static void bounds_have_the_probability_that_they_promise(void **state) {
  (void)state;
  const double doubts[] = {0.05, 0.025, 0.00625, 0.5};
  for (int n = 1; n <= 40; n += 3) {
    for (int k = 0; k <= n; k++) {
      for (int d = 0; d < 4; d++) {
        double upper = laci_binomial_upper_bound(k, n, doubts[d]);
        double lower = laci_binomial_lower_bound(k, n, doubts[d]);
        if (k < n) assert_true(near(tail(k, n, upper), doubts[d], 1e-9));
        else assert_true(upper == 1);
        if (k > 0) assert_true(near(1 - tail(k - 1, n, lower), doubts[d], 1e-9));
        else assert_true(lower == 0);
      }
    }
  }
}

static void published_intervals_are_met(void **state) {
  (void)state;
  /* n, k, 95 % interval of Clopper and Pearson: tables of R's binom.test */
  assert_true(near(laci_binomial_lower_bound(8, 8, 0.025), 0.6305834, 1e-6));
  assert_true(near(laci_binomial_lower_bound(9, 10, 0.025), 0.5549839, 1e-6));
  assert_true(near(laci_binomial_upper_bound(9, 10, 0.025), 0.9974714, 1e-6));
  assert_true(near(laci_binomial_upper_bound(0, 100, 0.05), 1 - pow(0.05, 0.01), 1e-12));
}

static void large_counts_are_as_the_normal_law_says(void **state) {
  (void)state;
  const double z = 1.959963985;
  for (int64_t n = 10000; n <= 1000000; n *= 10) {
    double rate = 0.3, error = sqrt(rate * (1 - rate) / (double)n);
    int64_t k = n * 3 / 10;
    assert_true(near(laci_binomial_upper_bound(k, n, 0.025), rate + z * error, 0.05 * error));
    assert_true(near(laci_binomial_lower_bound(k, n, 0.025), rate - z * error, 0.05 * error));
  }
}

static void the_least_number_is_the_first_that_shows_it(void **state) {
  (void)state;
  const double rates[] = {0.001, 0.01, 0.05, 0.5};
  for (int r = 0; r < 4; r++) {
    int64_t n = laci_binomial_find_least_trials(rates[r], 0.05);
    assert_true(laci_binomial_upper_bound(0, n, 0.05) <= rates[r]);
    assert_true(laci_binomial_upper_bound(0, n - 1, 0.05) > rates[r]);
  }
  assert_int_equal(laci_binomial_find_least_trials(0.01, 0.05), 299);
  assert_int_equal(laci_binomial_find_least_trials(1, 0.05), 1);
  assert_true(laci_binomial_find_least_trials(0, 0.05) == INT64_MAX);
  assert_true(laci_binomial_find_least_trials(NAN, 0.05) == INT64_MAX);
}

static void nothing_tried_says_nothing(void **state) {
  (void)state;
  assert_true(laci_binomial_upper_bound(0, 0, 0.05) == 1);
  assert_true(laci_binomial_lower_bound(0, 0, 0.05) == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bounds_have_the_probability_that_they_promise),
      cmocka_unit_test(published_intervals_are_met),
      cmocka_unit_test(large_counts_are_as_the_normal_law_says),
      cmocka_unit_test(the_least_number_is_the_first_that_shows_it),
      cmocka_unit_test(nothing_tried_says_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
