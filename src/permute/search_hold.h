/* SPDX-License-Identifier: Apache-2.0
 * The weights of a cut, in memory one after the other: a class may have more of them than memory
 * holds. Where all are in memory anyway, that is one visit. */
#ifndef LACI_PERMUTE_SEARCH_HOLD_H
#define LACI_PERMUTE_SEARCH_HOLD_H

#include "permute/search_cut.h"

/** Parts first .. end - 1 of `cut`, a copy, have their weights in memory; of the others nothing is
 * to be read. */
typedef void laci_cut_visit(const laci_cut *cut, int first, int end, void *context);

/** Visits all parts, in order. Fails LAC_NO_MEMORY, and as weights are read. */
LAC_MUST_CHECK lac_status laci_cut_each_weight(const laci_cut *cut, laci_cut_visit *visit,
                                               void *context, lac_error *err);

#endif
