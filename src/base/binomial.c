/* SPDX-License-Identifier: Apache-2.0
 * Sums the lower tail term by term, and finds the rate by bisection. */
#include "base/binomial.h"

#include <math.h>

enum { HALVINGS = 52 };

/* Returns the log of n choose k. */
static double log_binomial_coefficient(int64_t n, int64_t k) {
  double sum = 0;
  for (int64_t i = 1; i <= k; i++) sum += log((double)(n - k + i) / (double)i);
  return sum;
}

/* Returns the probability of k or fewer events in n trials at the rate p. Sums the terms from that
 * of k events downward, and computes each by its ratio to the one before; in a small tail they
 * decrease. */
static double probability_of_at_most(int64_t k, int64_t n, double p, double log_choose_k) {
  if (p <= 0 || k >= n) return 1;
  if (p >= 1) return 0;
  double term = log_choose_k + (double)k * log(p) + (double)(n - k) * log1p(-p), ratio = 1, sum = 1;
  for (int64_t i = k; i > 0 && ratio > 0; i--) {
    ratio *= (double)i / (double)(n - i + 1) * (1 - p) / p;
    sum += ratio;
    /* Here p is far below k / n: nearly all of the probability is in the tail. */
    if (sum > 1e250) return 1;
  }
  return fmin(1, exp(term + log(sum)));
}

double laci_binomial_upper_bound(int64_t k, int64_t n, double doubt) {
  if (n <= 0 || k >= n) return 1;
  const double choose = log_binomial_coefficient(n, k);
  double low = (double)k / (double)n, high = 1;
  for (int i = 0; i < HALVINGS; i++) {
    double p = low + (high - low) / 2;
    if (probability_of_at_most(k, n, p, choose) > doubt) low = p;
    else high = p;
  }
  return high;
}

/* The probability of k or more events is 1 minus that of k - 1 or fewer. */
double laci_binomial_lower_bound(int64_t k, int64_t n, double doubt) {
  if (n <= 0 || k <= 0) return 0;
  const double choose = log_binomial_coefficient(n, k - 1);
  double low = 0, high = (double)k / (double)n;
  for (int i = 0; i < HALVINGS; i++) {
    double p = low + (high - low) / 2;
    if (1 - probability_of_at_most(k - 1, n, p, choose) > doubt) high = p;
    else low = p;
  }
  return low;
}

int64_t laci_binomial_find_least_trials(double rate, double doubt) {
  if (!(rate > 0)) return INT64_MAX;
  if (rate >= 1) return 1;
  double n = ceil(log(doubt) / log1p(-rate));
  return n < 1 ? 1 : n > 9e18 ? INT64_MAX : (int64_t)n;
}
