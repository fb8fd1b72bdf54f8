/* SPDX-License-Identifier: Apache-2.0
 * Private functions of lac_mask for the other files of src/api. */
#ifndef LACI_API_TRAIN_MASK_IN_H
#define LACI_API_TRAIN_MASK_IN_H

#include <stdint.h>

#include "lacuna/status.h"

typedef struct lac_mask lac_mask;
typedef struct laci_comm laci_comm;

/** Returns a hash of the bytes of mask `at`, 0 <= at < lac_mask_count. */
uint64_t laci_mask_hash(const lac_mask *mask, int at);
/** Copies process 0's masks to all processes. Fails LAC_BAD_SHAPE if the masks of a process are not
 * for the same weights, LAC_PEER. mask NULL: there are no masks. */
LAC_MUST_CHECK lac_status laci_mask_broadcast(lac_mask *mask, laci_comm *comm, lac_error *err);

#endif
