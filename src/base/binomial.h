/* SPDX-License-Identifier: Apache-2.0
 * Bounds on a rate from a count: of n independent tries k came out so.
 *
 *     upper: the rate p at which k or fewer of n have the probability `doubt`
 *     lower: the rate p at which k or more of n have it             (Clopper and Pearson, 1934)
 *
 * Each is wrong with a probability of at most `doubt`, whatever the rate is; an interval of both
 * with twice that. No approximation: small n and k = 0 are as right as others. */
#ifndef LACI_BASE_BINOMIAL_H
#define LACI_BASE_BINOMIAL_H

#include <stdint.h>

/** In [0, 1]; 0 <= k <= n, 0 < doubt < 1; without tries 1 and 0. O(k). */
double laci_binomial_upper(int64_t k, int64_t n, double doubt);
double laci_binomial_lower(int64_t k, int64_t n, double doubt);

/** The fewest tries, none of which came out so, that show a rate of at most `rate`; INT64_MAX
 * where no number does (rate <= 0). */
int64_t laci_binomial_least(double rate, double doubt);

#endif
