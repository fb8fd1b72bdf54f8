/* SPDX-License-Identifier: Apache-2.0
 * Randomness and temperature for annealing, in integers only.
 *
 * Adding Gumbel noise to a table before taking its best assignment draws assignments by their
 * value. Every machine must draw the same noise, so neither libm nor floating point is used: the
 * noise is from a table of quantiles computed with integer logarithms, and temperatures are
 * fixed-point numbers. */
#ifndef LACI_PERMUTE_SEARCH_NOISE_H
#define LACI_PERMUTE_SEARCH_NOISE_H

#include <stdint.h>

enum {
  LACI_NOISE_BITS = 12,      /* 4096 quantiles */
  LACI_NOISE_ONE = 1 << 11,  /* noise of size 1 */
  LACI_TEMPERATURE_BITS = 20 /* fraction bits of a temperature; many, since slow cooling changes it
                                little */
};

#define LACI_TEMPERATURE_LIMIT ((INT64_C(1) << (26 + LACI_TEMPERATURE_BITS)) / 10)

/** Returns a table whose element i is the quantile u = (i + 1/2) / 4096 of the Gumbel distribution,
 * -ln(-ln u), times LACI_NOISE_ONE. It is computed on first use. */
const int16_t *laci_gumbel_noise_table(void);

/** Subtracts temperature * Gumbel noise from each of the n costs of a row; temperature <=
 * LACI_TEMPERATURE_LIMIT, so that no noise exceeds 2^26. key: a random number for (seed, iteration,
 * row). */
void laci_gumbel_noise_subtract(int32_t *cost, int n, int64_t temperature, uint32_t key);

/** Returns temperature * e^(-exponent / 2^16) for |exponent| <= 2^14, computed with four terms of
 * the series. */
int64_t laci_cool_temperature(int64_t temperature, int64_t exponent);

#endif
