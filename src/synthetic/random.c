/* SPDX-License-Identifier: Apache-2.0 */
#include "synthetic/random.h"

#include <math.h>

#include "base/rng.h"

static const double two_pi = 6.283185307179586;

static double next_unit_number(laci_random *random) {
  return laci_rng_unit_interval(random->seed, random->stream, random->next++);
}

double laci_random_between(laci_random *random, double low, double high) {
  return low + (high - low) * next_unit_number(random);
}

int laci_random_below(laci_random *random, int n) { return (int)(next_unit_number(random) * n); }

bool laci_random_chance(laci_random *random, double probability) {
  return next_unit_number(random) < probability;
}

double laci_random_normal(laci_random *random, double deviation) {
  const double radius = sqrt(-2 * log(1 - next_unit_number(random)));
  return deviation * radius * cos(two_pi * next_unit_number(random));
}

double laci_random_brightness(laci_random *random) {
  for (;;) {
    const double x = next_unit_number(random);
    /* accepts x with its density divided by the maximum density, which is at 1/2 */
    if (next_unit_number(random) < pow(4 * x * (1 - x), 0.2)) return x;
  }
}
