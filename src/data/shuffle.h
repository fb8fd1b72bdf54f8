/* SPDX-License-Identifier: Apache-2.0
 * A seeded permutation of 0 .. n - 1 without a table: the image at any place of any epoch is
 * computed directly, so that a run can continue anywhere without stored state. */
#ifndef LACI_DATA_SHUFFLE_H
#define LACI_DATA_SHUFFLE_H

#include <stdint.h>

/** Returns the index of the image at place `at` (0 <= at < n <= 2^62) in the permutation of this
 * seed and epoch; the same on every machine. */
int64_t laci_shuffled_index(uint64_t seed, uint64_t epoch, int64_t n, int64_t at);

#endif
