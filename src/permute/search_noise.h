/* SPDX-License-Identifier: Apache-2.0
 * Random noise and temperature for annealing, with integers only.
 *
 * Adding Gumbel noise to a table before finding its best assignment draws assignments at random,
 * the better ones more often. Every machine must draw the same noise, so neither libm nor floating
 * point is used. The noise is from a table of quantiles, computed with integer logarithms;
 * temperatures are fixed-point numbers. */
#ifndef LACI_PERMUTE_SEARCH_NOISE_H
#define LACI_PERMUTE_SEARCH_NOISE_H

#include <stdint.h>

enum {
  LACI_NOISE_BITS = 12,      /* number of bits of an index in the table of quantiles, which has
                                4096 */
  LACI_NOISE_ONE = 1 << 11,  /* integer that represents noise of size 1 */
  LACI_TEMPERATURE_BITS = 20 /* number of fraction bits of a temperature: so many because slow
                                cooling changes it little */
};

#define LACI_TEMPERATURE_LIMIT ((INT64_C(1) << (26 + LACI_TEMPERATURE_BITS)) / 10)

/** Returns the table of Gumbel quantiles. Element i is -ln(-ln u) * LACI_NOISE_ONE for u = (i +
 * 1/2) / 4096. The table is computed on first use. */
const int16_t *laci_gumbel_noise_table(void);

/** Subtracts temperature * Gumbel noise from each of the n costs of a row; temperature <=
 * LACI_TEMPERATURE_LIMIT, so that no noise exceeds 2^26. key: a random number for (seed, iteration,
 * row). */
void laci_gumbel_noise_subtract(int32_t *cost, int n, int64_t temperature, uint32_t key);

/** Returns temperature * e^(-exponent / 2^16), for |exponent| <= 2^14. Four terms of the series are
 * computed. */
int64_t laci_cool_temperature(int64_t temperature, int64_t exponent);

#endif
