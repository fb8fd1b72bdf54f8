/* SPDX-License-Identifier: Apache-2.0
 * Bounds on the rate of an event that was observed in k of n independent trials.
 *
 *     upper: the rate p at which k or fewer of n have the probability `doubt`
 *     lower: the rate p at which k or more of n have the probability `doubt`
 *
 * The method is that of Clopper and Pearson (1934). Each bound is wrong with a probability of at
 * most `doubt`, whatever the rate is, and the interval between both bounds with at most twice that
 * probability. The computation is exact also for small n and k = 0. */
#ifndef LACI_BASE_BINOMIAL_H
#define LACI_BASE_BINOMIAL_H

#include <stdint.h>

/** Return the upper and the lower bound, in [0, 1], of the rate of an event that occurred in k of n
 * trials (0 <= k <= n). doubt: the probability, in (0, 1), that the bound is wrong. For n = 0 the
 * bounds are 1 and 0. Time: O(k). */
double laci_binomial_upper_bound(int64_t k, int64_t n, double doubt);
double laci_binomial_lower_bound(int64_t k, int64_t n, double doubt);

/** Returns how many trials without the event are needed before its rate can be taken to be at most
 * `rate`, with the probability `doubt` of error. INT64_MAX if no number is enough (rate <= 0). */
int64_t laci_binomial_find_least_trials(double rate, double doubt);

#endif
