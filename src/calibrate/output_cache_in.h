/* SPDX-License-Identifier: Apache-2.0
 * Access to the cache of a network's outputs (laci_output_cache, samples.h), for outputs.c. */
#ifndef LACI_CALIBRATE_OUTPUT_CACHE_IN_H
#define LACI_CALIBRATE_OUTPUT_CACHE_IN_H

#include "calibrate/samples.h"

/** Returns all outputs of the network for the batch of n samples from sample `first` on, one output
 * after the other; NULL: they were not stored. kept may be NULL: nothing is stored. */
const uint8_t *laci_output_cache_find(laci_output_cache *cache, int64_t first, int64_t n);

/** Returns memory of `bytes` for the outputs of that batch, to be filled by the caller; NULL: the
 * limit would be exceeded, or there is no memory. */
uint8_t *laci_output_cache_add(laci_output_cache *cache, int64_t first, int64_t n, uint64_t bytes);

#endif
