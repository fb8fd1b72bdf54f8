/* SPDX-License-Identifier: Apache-2.0
 * Is one network another one, reordered and masked? */
#ifndef LACI_API_AGAINST_H
#define LACI_API_AGAINST_H

#include "permute/plan.h"

/** Finds the orders (into plan, a plan of the original's analysis) that turn the original's stored
 * tensors into those of `changed`, elements that are masked out (zero) in a layer's weight
 * excepted, and checks every element. Fails LAC_PROOF_FAILED naming the first tensor that cannot be
 * explained so. */
LAC_MUST_CHECK lac_status laci_explain_changes(laci_plan *plan, const laci_graph *changed,
                                               lac_error *err);

#endif
