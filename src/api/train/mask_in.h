/* SPDX-License-Identifier: Apache-2.0
 * Masks as other files of this room see them. */
#ifndef LACI_API_TRAIN_MASK_IN_H
#define LACI_API_TRAIN_MASK_IN_H

#include <stdint.h>

#include "lacuna/status.h"

typedef struct lac_mask lac_mask;
typedef struct laci_comm laci_comm;

/** Of the bytes of mask `at`, 0 <= at < lac_mask_count. */
uint64_t laci_mask_hash(const lac_mask *mask, int at);
/** The masks become process 0's; those of the others are of the same weights, or it fails
 * LAC_BAD_SHAPE. mask NULL: there are none. Fails LAC_PEER. */
LAC_MUST_CHECK lac_status laci_mask_share(lac_mask *mask, laci_comm *comm, lac_error *err);

#endif
