/* SPDX-License-Identifier: Apache-2.0
 * What outputs.c asks of the outputs that are kept. */
#ifndef LACI_CALIBRATE_KEPT_IN_H
#define LACI_CALIBRATE_KEPT_IN_H

#include "calibrate/samples.h"

/** All outputs of the batch of n samples, one after the other, or NULL; kept NULL: nothing is. */
const uint8_t *laci_kept_outputs_find(laci_kept_outputs *kept, int64_t first, int64_t n);

/** Where they are to be written; NULL: the limit leaves no memory for them. */
uint8_t *laci_kept_outputs_add(laci_kept_outputs *kept, int64_t first, int64_t n, uint64_t bytes);

#endif
