/* SPDX-License-Identifier: Apache-2.0
 * A seeded permutation of 0 .. n - 1 without a table: the image at any place of any epoch is
 * computed, so a run can go on anywhere and needs no state for it. */
#ifndef LACI_DATA_SHUFFLE_H
#define LACI_DATA_SHUFFLE_H

#include <stdint.h>

/** Where `at` (0 <= at < n <= 2^62) goes in the permutation of this seed and epoch. Same on every
 * machine. */
int64_t laci_shuffle(uint64_t seed, uint64_t epoch, int64_t n, int64_t at);

#endif
