/* SPDX-License-Identifier: Apache-2.0
 * Access to the cache of a network's outputs (laci_kept_outputs, samples.h), for outputs.c. */
#ifndef LACI_CALIBRATE_KEPT_IN_H
#define LACI_CALIBRATE_KEPT_IN_H

#include "calibrate/samples.h"

/** Returns all outputs of the network for the batch of n samples from sample `first` on, one output
 * after the other; NULL: they were not stored. kept may be NULL: nothing is stored. */
const uint8_t *laci_kept_outputs_find(laci_kept_outputs *kept, int64_t first, int64_t n);

/** Returns memory of `bytes` for the outputs of that batch, to be filled by the caller; NULL: the
 * limit would be exceeded, or there is no memory. */
uint8_t *laci_kept_outputs_add(laci_kept_outputs *kept, int64_t first, int64_t n, uint64_t bytes);

#endif
