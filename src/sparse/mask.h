/* SPDX-License-Identifier: Apache-2.0
 * N:M masks: choosing, checking and applying them, block by block along the input channels. */
#ifndef LACI_SPARSE_MASK_H
#define LACI_SPARSE_MASK_H

#include "sparse/weight_view.h"

typedef struct laci_pool laci_pool;

/** Mask with the largest kept score in every block:  keep = the n largest scores of each m;
 *  ties keep the lowest column.
 *  mask  out  [outer * columns * inner] bytes in the weight's own order, 1 = kept; caller's memory.
 *             A partial block of b columns keeps min(n, b): as if padded with zeros.
 *  Fails LAC_BAD_VALUE naming tensor and flat index of a NaN or Inf. Any thread; same bytes for any
 *  pool. */
LAC_MUST_CHECK lac_status laci_mask_choose(const laci_weight_view *weight, laci_pattern pattern,
                                           laci_pool *pool, uint8_t *mask, lac_error *err);

typedef struct laci_mask_stats {
  int64_t n_elements,
      n_zeros;        /* zeros of the stored weights themselves (equal to their zero point) */
  bool holds_pattern; /* at most n non-zeros in every block */
  double kept; /* sum of the n largest scores of every block: what choosing now would keep; float64,
                  fixed order */
  double total; /* sum of all scores */
} laci_mask_stats;

/** One pass over the weight as it is stored. Fails as laci_mask_choose. */
LAC_MUST_CHECK lac_status laci_mask_measure(const laci_weight_view *weight, laci_pattern pattern,
                                            laci_pool *pool, laci_mask_stats *stats,
                                            lac_error *err);

/** The mask of what is not zero now (not equal to its zero point); layout as laci_mask_choose. */
void laci_mask_of_zeros(const laci_weight_view *weight, uint8_t *mask);

/** Sets every masked-out element of `bytes` (layout and type of weight) to the weight's zero (its
 * zero point, or 0). */
void laci_mask_apply(const laci_weight_view *weight, const uint8_t *mask, uint8_t *bytes);

/** First flat index of a NaN or Inf, or -1. */
int64_t laci_find_not_finite(lac_dtype dtype, const uint8_t *bytes, int64_t n);

#endif
