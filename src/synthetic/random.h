/* SPDX-License-Identifier: Apache-2.0
 * Random numbers in sequence: each call takes the next numbers of a random stream (base/rng.h). */
#ifndef LACI_SYNTHETIC_RANDOM_H
#define LACI_SYNTHETIC_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

/** A random stream, and the position of its next number. Start with next = 0. */
typedef struct laci_random {
  uint64_t seed, stream, next;
} laci_random;

/** Returns a uniform random number in [low, high). */
double laci_random_between(laci_random *random, double low, double high);
/** Returns a uniform random integer from 0 to n - 1; n >= 1. */
int laci_random_below(laci_random *random, int n);
/** Returns true with this probability. */
bool laci_random_chance(laci_random *random, double probability);
/** Returns a random number of the normal distribution with mean 0, by the transformation of Box and
 * Muller (1958). deviation: its standard deviation. */
double laci_random_normal(laci_random *random, double deviation);
/** Returns a random number of the distribution Beta(1.2, 1.2), which is in (0, 1) and seldom near
 * its ends. Uses rejection from the uniform distribution. */
double laci_random_brightness(laci_random *random);

#endif
