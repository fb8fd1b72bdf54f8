/* SPDX-License-Identifier: Apache-2.0
 * Random numbers in sequence: each call takes the next numbers of a stream (base/rng.h). */
#ifndef LACI_SYNTHETIC_RANDOM_H
#define LACI_SYNTHETIC_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

/** The position of the next number. Start with next = 0. */
typedef struct laci_random {
  uint64_t seed, stream, next;
} laci_random;

/** Returns a number in [low, high). */
double laci_random_between(laci_random *random, double low, double high);
/** Returns an integer 0 .. n - 1; n >= 1. */
int laci_random_below(laci_random *random, int n);
/** Returns true with this probability. */
bool laci_random_chance(laci_random *random, double probability);
/** Returns a normal number of mean 0, by the transformation of Box and Muller (1958). */
double laci_random_normal(laci_random *random, double deviation);
/** Returns a number of the distribution Beta(1.2, 1.2): in (0, 1), seldom near its ends. Uses
 * rejection from the uniform distribution. */
double laci_random_brightness(laci_random *random);

#endif
