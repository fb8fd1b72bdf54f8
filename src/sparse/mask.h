/* SPDX-License-Identifier: Apache-2.0
 * Chooses, checks and applies N:M masks, block by block along the input channels.
 *
 * The mask rule says how masks are chosen: row by row (mask.c), in blocks that hold N:M in both
 * directions (square.h), or in blocks of V rows that share their columns, V:N:M (shared_columns.h).
 * In each case every row holds N:M. Masks maximize the sum of scores, which are |w| or the view's
 * `score`. The reported `kept` is the sum of |w| in either case. Blocks of several rows need the
 * view's rows (weight_view.h). Masks and sums are the same bytes for any number of threads. */
#ifndef LACI_SPARSE_MASK_H
#define LACI_SPARSE_MASK_H

#include "sparse/weight_view.h"

typedef struct laci_pool laci_pool;

/** Fails with LAC_BAD_VALUE if the weight has a NaN or an infinity. The text names the tensor and
 * the flat index of the first one, for any number of threads. */
LAC_MUST_CHECK lac_status laci_weight_check_finite(const laci_weight_view *weight, laci_pool *pool,
                                                   lac_error *err);

/** Chooses the mask that keeps the n largest scores in every block of m columns; of equal scores,
 * the lowest column is kept. mask: [outer * columns * inner] bytes in the weight's own order, 1 =
 * kept; the caller's memory. A partial block of b columns keeps min(n, b), as if it were padded
 * with zeros. Fails with LAC_BAD_VALUE for a NaN or an infinity; the text names the tensor and the
 * flat index. Callable from any thread; the same bytes for any number of threads. */
LAC_MUST_CHECK lac_status laci_mask_choose(const laci_weight_view *weight, laci_pattern pattern,
                                           laci_pool *pool, uint8_t *mask, lac_error *err);

typedef struct laci_mask_stats {
  int64_t n_elements, n_zeros; /* number of stored elements, and of those that are zero (equal to
                                  their zero point) */
  bool holds_pattern;          /* true: every block has at most n nonzeros */
  double kept;  /* sum of the n largest scores of every block, which a new mask would keep. It is
                   added in double, in a fixed order */
  double total; /* sum of the scores of all elements */
} laci_mask_stats;

/** Measures the weight as it is stored, in one pass. Scores are |w|, and weight->score is not read.
 * Fails as laci_mask_choose. */
LAC_MUST_CHECK lac_status laci_mask_measure(const laci_weight_view *weight, laci_pattern pattern,
                                            laci_pool *pool, laci_mask_stats *stats,
                                            lac_error *err);

/** Sets mask[i] to 1 if element i is not zero (not equal to its zero point), else to 0. Its layout
 * is that of laci_mask_choose. */
void laci_mask_from_zeros(const laci_weight_view *weight, uint8_t *mask);

/** Sets every masked-out element of `bytes` to the weight's zero (its zero point, or 0). bytes:
 * elements in the layout and type of the weight. */
void laci_mask_apply(const laci_weight_view *weight, const uint8_t *mask, uint8_t *bytes);

/** Returns the flat index of the first NaN or infinity among n elements; -1: there is none. */
int64_t laci_find_first_not_finite(lac_dtype dtype, const uint8_t *bytes, int64_t n);

/* ---- Masks by any rule (rule.c) ---- */

/** Finds a form of masks by its name: "1d", "2d-greedy" or "2d-best". Returns false if there is no
 * such form. */
bool laci_mask_form_find(const char *name, laci_mask_form *form);

/** Fails with LAC_BAD_ARGUMENT if the rule is not valid. V:N:M requires 1 <= v <=
 * LACI_SHARED_MOST_ROWS, and 1 <= N <= 4 < M or N < M == 4. */
LAC_MUST_CHECK lac_status laci_mask_rule_check(const laci_mask_rule *rule, lac_error *err);

/** Chooses a mask by a rule. mask and failures as in laci_mask_choose; also fails with
 * LAC_BAD_SHAPE if the rule needs the view's rows and these are not known. */
LAC_MUST_CHECK lac_status laci_mask_choose_by_rule(const laci_weight_view *weight,
                                                   const laci_mask_rule *rule, laci_pool *pool,
                                                   uint8_t *mask, lac_error *err);

/** A result of laci_mask_measure_by_rule, which measures as laci_mask_measure does, for a mask that
 * the rule would choose. stats->holds_pattern is for V:N:M if that is the rule, else for N:M.
 * stats->kept is the sum of |w| that the mask keeps. This struct has sums of scores, which are the
 * view's `score`, or |w| if it has none. kept: those that the mask keeps. total: all scores. */
typedef struct laci_mask_scores {
  double kept, total;
} laci_mask_scores;
LAC_MUST_CHECK lac_status laci_mask_measure_by_rule(const laci_weight_view *weight,
                                                    const laci_mask_rule *rule, laci_pool *pool,
                                                    laci_mask_stats *stats,
                                                    laci_mask_scores *scores, lac_error *err);

/** Sets *holds: the weight, as it is stored, holds N:M along its output channels. So every aligned
 * block of m rows has at most n nonzeros in each column. False if the view's rows are not known.
 * Fails with LAC_NO_MEMORY, and as laci_mask_measure. */
LAC_MUST_CHECK lac_status laci_weight_has_pattern_along_rows(const laci_weight_view *weight,
                                                             laci_pattern pattern, laci_pool *pool,
                                                             bool *holds, lac_error *err);

#endif
