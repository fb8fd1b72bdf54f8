/* SPDX-License-Identifier: Apache-2.0
 * Bounds on the rate of an event that was observed in k of n independent trials.
 *
 *     upper: the rate p at which k or fewer of n have the probability `doubt`
 *     lower: the rate p at which k or more of n have it             (Clopper and Pearson, 1934)
 *
 * Each bound is wrong with a probability of at most `doubt`, whatever the rate is; an interval
 * between both, with twice that. The computation is exact also for small n and k = 0. */
#ifndef LACI_BASE_BINOMIAL_H
#define LACI_BASE_BINOMIAL_H

#include <stdint.h>

/** The bounds, in [0, 1]; 0 <= k <= n, 0 < doubt < 1; for n = 0 they are 1 and 0. O(k). */
double laci_binomial_upper(int64_t k, int64_t n, double doubt);
double laci_binomial_lower(int64_t k, int64_t n, double doubt);

/** Returns the least number of trials without the event that show a rate of at most `rate`;
 * INT64_MAX where no number does (rate <= 0). */
int64_t laci_binomial_least(double rate, double doubt);

#endif
