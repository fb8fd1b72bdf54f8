/* SPDX-License-Identifier: Apache-2.0
 * What the files of the list and the judge share. */
#ifndef LACI_TARGET_TARGET_IN_H
#define LACI_TARGET_TARGET_IN_H

#include "target/target.h"

/** An array of a target and its length, for the initialiser of the fields NAME and n_NAME. */
#define LACI_TARGET_LIST(name) .name = (name), .n_##name = sizeof(name) / sizeof *(name)

/** Non-zeros of a weight, and their pattern. */
typedef struct laci_target_mask {
  uint8_t *kept; /* [n] 1: not zero */
  int64_t n, n_zeros;
  bool by_zero_point; /* some of the zeros are stored as a zero point that is not 0 */
} laci_target_mask;

/** mask.c: reads the elements. Fails LAC_NO_MEMORY. Clear it in any case. */
LAC_MUST_CHECK lac_status laci_target_mask_read(const laci_target_layer *layer,
                                                laci_target_mask *mask, lac_error *err);
void laci_target_mask_clear(laci_target_mask *mask);

/** mask.c: LACI_FAULT_NONE where the mask holds the pattern along the input channels; else what it
 * is, with a sentence. */
laci_target_fault laci_target_mask_fault(const laci_target_layer *layer,
                                         const laci_target_mask *mask, laci_pattern pattern,
                                         char reason[LACI_TARGET_TEXT]);

/** mask.c: does every mask of pattern `has` hold pattern `wants`, too? */
bool laci_target_pattern_implies(laci_pattern has, laci_pattern wants);

#endif
