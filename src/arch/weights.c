/* SPDX-License-Identifier: Apache-2.0
 * Fresh weights: number k of a tensor depends on (seed, stream, k) only. Normal ones come in pairs
 * by Box and Muller: radius sqrt(-2 log u), angle 2 pi v. */
#include <math.h>

#include "arch/build_in.h"
#include "base/rng.h"

static const double two_pi = 6.28318530717958647692;

void laci_arch_fill_normal(uint64_t seed, uint64_t stream, double deviation, float *to, size_t n) {
  for (size_t k = 0; k < n; k += 2) {
    double radius = sqrt(-2 * log(1 - laci_rng_unit_interval(seed, stream, k)));
    double angle = two_pi * laci_rng_unit_interval(seed, stream, k + 1);
    to[k] = (float)(deviation * radius * cos(angle));
    if (k + 1 < n) to[k + 1] = (float)(deviation * radius * sin(angle));
  }
}

void laci_arch_fill_uniform(uint64_t seed, uint64_t stream, double bound, float *to, size_t n) {
  for (size_t k = 0; k < n; k++) {
    to[k] = (float)(bound * (2 * laci_rng_unit_interval(seed, stream, k) - 1));
  }
}
