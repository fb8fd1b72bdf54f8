/* SPDX-License-Identifier: Apache-2.0
 * Writes a plan as a permutation file, which is JSON text, and reads it back. */
#ifndef LACI_PERMUTE_FILE_H
#define LACI_PERMUTE_FILE_H

#include "sparse/weight_view.h"

typedef struct laci_plan laci_plan;

/** Returns the text of the plan's permutation file (free with laci_free). It identifies the network
 * by a hash of its structure, so that it also fits the network after pruning or fine-tuning. */
LAC_MUST_CHECK lac_status laci_permutation_text(const laci_plan *plan, laci_pattern pattern,
                                                uint64_t seed, char **text, lac_error *err);

/** Reads the text of a permutation file into plan->found[].order, inverted if `invert`, and
 * completes the plan. name: for messages. Fails with LAC_BAD_FILE if the text is damaged, is no
 * permutation file, or belongs to another network. */
LAC_MUST_CHECK lac_status laci_permutation_read(laci_plan *plan, const char *name, const char *text,
                                                bool invert, lac_error *err);

#endif
