/* SPDX-License-Identifier: Apache-2.0
 * Loads the weights of a cut (a table of columns, search_cut.h) into memory one after the other,
 * and visits their parts. All weights of a class together might not fit. If they are in memory
 * anyway, all parts are visited at once. */
#ifndef LACI_PERMUTE_SEARCH_HOLD_H
#define LACI_PERMUTE_SEARCH_HOLD_H

#include "permute/search_cut.h"

/** A function that is called while the weights of parts first to end - 1 (each has rows of one
 * weight) are in memory. It must not read other parts. cut: a copy whose weights are these. */
typedef void laci_cut_visit(const laci_cut *cut, int first, int end, void *context);

/** Visits all parts (rows of one weight each) in order. Fails with LAC_NO_MEMORY, and as reading
 * weights does. */
LAC_MUST_CHECK lac_status laci_cut_load_and_visit_weights(const laci_cut *cut,
                                                          laci_cut_visit *visit, void *context,
                                                          lac_error *err);

#endif
