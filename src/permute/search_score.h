/* SPDX-License-Identifier: Apache-2.0
 * The exact score of an order: the sum of the scores that the pattern keeps with it, in float64,
 * summed in a fixed order. Searches compute with integers; their results are accepted only if this
 * score confirms them. */
#ifndef LACI_PERMUTE_SEARCH_SCORE_H
#define LACI_PERMUTE_SEARCH_SCORE_H

#include "permute/search_cut.h"

typedef struct laci_measure {
  double kept_identity,
      upper;      /* as in laci_search_result (search.h): score that is kept with the order before
                     the search, and upper bound of any order */
  double largest; /* the largest score of an element */
  double common;  /* 99.8 % of the scores are at most this, by a fixed sample */
} laci_measure;

/** Measures the weights in one pass. Fails with LAC_BAD_VALUE for a NaN or an infinity; the text
 * names the weight and the index. */
LAC_MUST_CHECK lac_status laci_cuts_measure_weights(const laci_cuts *cuts, laci_pool *pool,
                                                    laci_measure *measure, lac_error *err);

/** Sets *kept to the sum of the scores that the pattern keeps with this order of channels. The
 * result has the same bits for any number of threads. */
LAC_MUST_CHECK lac_status laci_cuts_score_order(const laci_cuts *cuts, const int32_t *order,
                                                laci_pool *pool, double *kept, lac_error *err);

/** Moves the k largest of values[0 .. n) to the beginning, 0 <= k <= n. Takes O(n), and makes the
 * same swaps on every machine. */
void laci_select_largest(double *values, int64_t n, int64_t k);

#endif
