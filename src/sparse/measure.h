/* SPDX-License-Identifier: Apache-2.0
 * Measures a weight as it is stored, in the same manner for all callers. */
#ifndef LACI_SPARSE_MEASURE_H
#define LACI_SPARSE_MEASURE_H

#include "sparse/mask.h"

typedef struct laci_weight_measurement {
  laci_mask_stats stats; /* statistics of the weight; holds_pattern is for V:N:M if that is the
                            rule, else for N:M */
  bool is_pruned;        /* true: the weight is pruned, as laci_mask_stats_are_pruned defines it */
  bool holds_rows;       /* true: the weight holds N:M along its output channels, too */
} laci_weight_measurement;

/** Is a weight with these statistics pruned? It is if it holds the pattern, is not all zeros, and
 * has more than n input channels, so that the pattern matters. */
static inline bool laci_mask_stats_are_pruned(const laci_mask_stats *stats, int64_t channels_in,
                                              int n) {
  const bool is_zero = stats->n_elements > 0 && stats->n_zeros == stats->n_elements;
  return stats->holds_pattern && channels_in > n && !is_zero;
}

/** Measures a weight as it is stored. Fails as laci_mask_measure. */
LAC_MUST_CHECK lac_status laci_weight_measure(const laci_weight_view *weight,
                                              const laci_mask_rule *rule, laci_pool *pool,
                                              laci_weight_measurement *look, lac_error *err);

#endif
