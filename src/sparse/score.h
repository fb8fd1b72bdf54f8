/* SPDX-License-Identifier: Apache-2.0
 * Reads a weight's scores in ranges of elements, whatever the element type; a weight is never
 * expanded as a whole. Masks (mask.c) and the permutation search read weights only through these
 * functions, so both mean the same by "score". */
#ifndef LACI_SPARSE_SCORE_H
#define LACI_SPARSE_SCORE_H

#include "sparse/weight_view.h"

typedef struct laci_acquired_bytes laci_acquired_bytes;

/** Fails with LAC_BAD_ARGUMENT if the pattern is not valid. */
LAC_MUST_CHECK lac_status laci_pattern_check(laci_pattern pattern, lac_error *err);

/** Checks a view and a pattern, without reading elements. Fails with LAC_BAD_ARGUMENT,
 * LAC_BAD_SHAPE, LAC_UNSUPPORTED, or LAC_BAD_VALUE (a scale or zero point); the text names the
 * weight. */
LAC_MUST_CHECK lac_status laci_weight_check(const laci_weight_view *weight, laci_pattern pattern,
                                            lac_error *err);

/** Copies the view to *in_memory, whose bytes are in memory until laci_bytes_release(held).
 * Functions that read elements require such a view. Fails as laci_bytes_acquire. */
LAC_MUST_CHECK lac_status laci_weight_acquire(const laci_weight_view *weight,
                                              laci_weight_view *in_memory,
                                              laci_acquired_bytes *held, lac_error *err);

/** Reads the distances of n elements from their zero: out[i] = |w[first + i] - zero|, which is 0
 * exactly if the stored element is its zero. */
void laci_zero_distances_read(const laci_weight_view *weight, int64_t first, int64_t n,
                              double *out);

/** Converts distances to scores: multiplies out[i] by |scale| of element first + i, and squares it
 * if the view says so. */
void laci_distances_to_scores(const laci_weight_view *weight, int64_t first, int64_t n,
                              double *out);

/** Reads the scores of elements [first, first + n): laci_zero_distances_read, then
 * laci_distances_to_scores.
 */
void laci_scores_read(const laci_weight_view *weight, int64_t first, int64_t n, double *out);

/** Fails with LAC_BAD_VALUE if `at` is >= 0. at: result of laci_find_first_not_finite, the flat
 * index of a NaN or an infinity. The text names the tensor and the index. */
LAC_MUST_CHECK lac_status laci_fail_not_finite(const laci_weight_view *weight, int64_t at,
                                               lac_error *err);

#endif
