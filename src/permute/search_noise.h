/* SPDX-License-Identifier: Apache-2.0
 * Randomness and temperature for annealing, in integers only.
 *
 * Adding Gumbel noise to a table before taking its best assignment draws assignments by their
 * value. Every machine must draw the same, so neither libm nor floating point may take part: the
 * noise comes from a table of quantiles that is made by integer logarithms, and temperatures are
 * fixed-point numbers. */
#ifndef LACI_PERMUTE_SEARCH_NOISE_H
#define LACI_PERMUTE_SEARCH_NOISE_H

#include <stdint.h>

enum {
  LACI_NOISE_BITS = 12,      /* 4096 quantiles */
  LACI_NOISE_ONE = 1 << 11,  /* noise of size 1 */
  LACI_TEMPERATURE_BITS = 20 /* fraction bits of a temperature: slow cooling takes off little */
};

#define LACI_TEMPERATURE_LIMIT ((INT64_C(1) << (26 + LACI_TEMPERATURE_BITS)) / 10)

/** Quantile (i + 1/2) / 4096 of the Gumbel distribution, -ln(-ln u), times LACI_NOISE_ONE. Made on
 * first use. */
const int16_t *laci_noise_table(void);

/** cost[i] -= temperature * Gumbel for a row of n costs; temperature <= LACI_TEMPERATURE_LIMIT, so
 * that no noise exceeds 2^26. key: random, of (seed, iteration, row). */
void laci_noise_subtract(int32_t *cost, int n, int64_t temperature, uint32_t key);

/** temperature * e^(-x / 2^16), |x| <= 2^14: four terms of the series. */
int64_t laci_cool(int64_t temperature, int64_t x);

#endif
