/* SPDX-License-Identifier: Apache-2.0
 * Declarations that judge.c, mask.c and the files in list/ share. */
#ifndef LACI_TARGET_TARGET_IN_H
#define LACI_TARGET_TARGET_IN_H

#include "target/target.h"

/** Initializes the fields NAME and n_NAME of a target from the array NAME. */
#define LACI_TARGET_LIST(name) .name = (name), .n_##name = sizeof(name) / sizeof *(name)

/** Which elements of a weight are not zero. */
typedef struct laci_target_mask {
  uint8_t *kept; /* [n] 1: the element is not zero */
  int64_t n, n_zeros;
  bool by_zero_point; /* true: some of the zeros are stored as a zero point that is not 0 */
} laci_target_mask;

/** mask.c: finds the nonzeros of a layer's weight. Fails with LAC_NO_MEMORY. The caller clears
 * *mask in any case. */
LAC_MUST_CHECK lac_status laci_target_mask_read(const laci_target_layer *layer,
                                                laci_target_mask *mask, lac_error *err);
void laci_target_mask_clear(laci_target_mask *mask);

/** mask.c: returns LACI_FAULT_NONE if the mask holds the pattern along the input channels.
 * Otherwise returns the fault, and writes a sentence on it to `reason`. */
laci_target_fault laci_target_mask_fault(const laci_target_layer *layer,
                                         const laci_target_mask *mask, laci_pattern pattern,
                                         char reason[LACI_TARGET_TEXT]);

/** mask.c: is every mask of pattern `has` also a mask of pattern `wants`? */
bool laci_target_pattern_implies(laci_pattern has, laci_pattern wants);

#endif
