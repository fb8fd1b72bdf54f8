/* SPDX-License-Identifier: Apache-2.0
 * The permutation file: a plan as JSON text, and back. */
#ifndef LACI_PERMUTE_FILE_H
#define LACI_PERMUTE_FILE_H

#include "sparse/weight_view.h"

typedef struct laci_plan laci_plan;

/** Text of the plan's permutation file (laci_alloc). It names the network's structure by a hash, so
 * that pruned and fine-tuned descendants still match. */
LAC_MUST_CHECK lac_status laci_permutation_text(const laci_plan *plan, laci_pattern pattern,
                                                uint64_t seed, char **text, lac_error *err);

/** Reads such a text into plan->found[].order (inverted if asked) and completes the plan. `name` is
 * for messages. Fails LAC_BAD_FILE where it is damaged, no permutation, or of another network. */
LAC_MUST_CHECK lac_status laci_permutation_read(laci_plan *plan, const char *name, const char *text,
                                                bool invert, lac_error *err);

#endif
