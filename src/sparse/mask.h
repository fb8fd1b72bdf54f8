/* SPDX-License-Identifier: Apache-2.0
 * N:M masks: choosing, checking and applying them, block by block along the input channels.
 *
 * By the rule, masks are chosen row by row (mask.c), in blocks that hold N:M in both directions
 * (square.h), or in blocks of V rows that share their columns, V:N:M (shared_columns.h). In each
 * case every row holds N:M. Masks maximize scores, |w| or the view's `score`; the reported `kept`
 * is the sum of |w| in either case. Blocks of several rows need the view's rows (weight_view.h).
 * Masks and sums are the same bytes for any pool. */
#ifndef LACI_SPARSE_MASK_H
#define LACI_SPARSE_MASK_H

#include "sparse/weight_view.h"

typedef struct laci_pool laci_pool;

/** Fails LAC_BAD_VALUE where the weight has a NaN or Inf, naming the tensor and the flat index of
 * the first one, whatever the pool. */
LAC_MUST_CHECK lac_status laci_weight_check_finite(const laci_weight_view *weight, laci_pool *pool,
                                                   lac_error *err);

/** Chooses the mask that keeps the n largest scores in every block of m columns; of equal scores,
 * the lowest column is kept.
 *  mask  out  [outer * columns * inner] bytes in the weight's own order, 1 = kept; caller's memory.
 *             A partial block of b columns keeps min(n, b), as if padded with zeros.
 *  Fails LAC_BAD_VALUE naming tensor and flat index of a NaN or Inf. Callable from any thread;
 *  same bytes for any pool. */
LAC_MUST_CHECK lac_status laci_mask_choose(const laci_weight_view *weight, laci_pattern pattern,
                                           laci_pool *pool, uint8_t *mask, lac_error *err);

typedef struct laci_mask_stats {
  int64_t n_elements, n_zeros; /* number of stored elements, and of those that are zero (equal to
                                  their zero point) */
  bool holds_pattern;          /* at most n non-zeros in every block */
  double kept;  /* sum of the n largest scores of every block, which a new mask would keep; added in
                  double, in a fixed order */
  double total; /* sum of the scores of all elements */
} laci_mask_stats;

/** Measures the weight as it is stored, in one pass. Scores are |w|; weight->score is not read.
 * Fails as laci_mask_choose. */
LAC_MUST_CHECK lac_status laci_mask_measure(const laci_weight_view *weight, laci_pattern pattern,
                                            laci_pool *pool, laci_mask_stats *stats,
                                            lac_error *err);

/** Sets the mask to 1 where an element is not zero (not equal to its zero point); its layout is
 * that of laci_mask_choose. */
void laci_mask_from_zeros(const laci_weight_view *weight, uint8_t *mask);

/** Sets every masked-out element of `bytes` (layout and type of weight) to the weight's zero (its
 * zero point, or 0). */
void laci_mask_apply(const laci_weight_view *weight, const uint8_t *mask, uint8_t *bytes);

/** Returns the first flat index of a NaN or Inf, or -1. */
int64_t laci_find_first_not_finite(lac_dtype dtype, const uint8_t *bytes, int64_t n);

/* ---- By a rule (rule.c) ---- */

/** Finds a form by its name: "1d", "2d-greedy" or "2d-best". False: there is no such form. */
bool laci_mask_form_find(const char *name, laci_mask_form *form);

/** Fails LAC_BAD_ARGUMENT where the rule is not valid. V:N:M requires 1 <= v <=
 * LACI_SHARED_MOST_ROWS, and 1 <= N <= 4 < M or N < M == 4. */
LAC_MUST_CHECK lac_status laci_mask_rule_check(const laci_mask_rule *rule, lac_error *err);

/** Chooses a mask by a rule. mask and failures as laci_mask_choose; also fails LAC_BAD_SHAPE where
 * the rule needs the view's rows and these are not known. */
LAC_MUST_CHECK lac_status laci_mask_choose_by_rule(const laci_weight_view *weight,
                                                   const laci_mask_rule *rule, laci_pool *pool,
                                                   uint8_t *mask, lac_error *err);

/** Measures as laci_mask_measure, with
 *  holds_pattern  V:N:M where that is the rule, else N:M
 *  kept           sum of |w| that a mask by this rule would keep
 *  scores         sums by the view's `score` for that mask, or of |w| where it has none */
typedef struct laci_mask_scores {
  double kept, total;
} laci_mask_scores;
LAC_MUST_CHECK lac_status laci_mask_measure_by_rule(const laci_weight_view *weight,
                                                    const laci_mask_rule *rule, laci_pool *pool,
                                                    laci_mask_stats *stats,
                                                    laci_mask_scores *scores, lac_error *err);

/** Sets *holds to whether the weight, as it is stored, holds N:M along its output channels: at most
 * n non-zeros in every aligned block of m rows of each column. False where the view's rows are not
 * known. Fails LAC_NO_MEMORY, and as laci_mask_measure. */
LAC_MUST_CHECK lac_status laci_weight_has_pattern_along_rows(const laci_weight_view *weight,
                                                             laci_pattern pattern, laci_pool *pool,
                                                             bool *holds, lac_error *err);

#endif
