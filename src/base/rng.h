/* SPDX-License-Identifier: Apache-2.0
 * Random numbers without a state: (seed, stream, counter) -> 64 bits.
 *
 * The k-th number of a stream is computed directly, in any order and from any thread, so results do
 * not depend on which thread computes what. The design is Philox4x32-10 of Salmon, Moraes, Dror and
 * Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011): ten rounds of two 32 x 32
 * multiplications on a block of four words. */
#ifndef LACI_BASE_RNG_H
#define LACI_BASE_RNG_H

#include <stdint.h>

/** Computes a block of Philox4x32-10: four words from a counter of four words and a key of two. */
void laci_rng_block(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/** Returns 64 random bits, which depend only on (seed, stream, counter) and are the same on every
 * machine. */
uint64_t laci_rng(uint64_t seed, uint64_t stream, uint64_t counter);

/** Returns a number from 0 to n - 1 (n >= 1), by multiplication: the bias is below n / 2^64. */
uint64_t laci_rng_integer_below(uint64_t seed, uint64_t stream, uint64_t counter, uint64_t n);

/** Returns a number in [0, 1) with 53 random bits. */
double laci_rng_unit_interval(uint64_t seed, uint64_t stream, uint64_t counter);

#endif
