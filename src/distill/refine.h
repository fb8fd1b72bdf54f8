/* SPDX-License-Identifier: Apache-2.0
 * Trains a pruned network towards the dense one for a given time or number of steps, and judges it
 * on samples that no step has read.
 *
 *   rate(s) = rate * min((s + 1) / 20, (1 + cos(pi s / T)) / 2)     step s of T
 *
 * Where a time is given, a step has fewer samples if otherwise few steps would fit into it. T is
 * estimated from the duration of the first steps, whose rates do not depend on T: a run with that
 * number of steps and of samples in a step gives the same bytes. The optimizer is Adam (Kingma
 * and Ba, 2015) without decay. Batch normalization uses the running statistics in training, too:
 * the statistics of a batch are noise that the dense network's outputs do not have. Next:
 * reconstruct.h (the loss). */
#ifndef LACI_DISTILL_REFINE_H
#define LACI_DISTILL_REFINE_H

#include "calibrate/samples.h"

typedef struct laci_refine_options {
  double seconds;              /* approximate duration of the whole call in seconds; used if > 0 */
  int64_t steps;               /* exact number of steps, however long they take; used if > 0 */
  int64_t n_fitted;            /* number of samples that training steps read: [0, n_fitted) */
  int64_t first_held, n_held;  /* samples [first_held, first_held + n_held) are held back to judge
                                  the result */
  const uint8_t *const *masks; /* [n_stored] masks of the student's weights, as in
                                  laci_reconstruct_options */
  int64_t batch;               /* number of samples in a step, at most n_fitted; 0: 128. Fewer where
                                  a time is given into which few such steps fit */
  double rate;                 /* largest learning rate, `rate` in the formula at the top of this
                                  file; 0: 1e-3 */
  uint64_t seed;               /* random seed for the order of the samples */
  bool bf16, dense_only;
  laci_pool *pool;           /* threads; the steps use as many as it has; NULL: one thread */
  const laci_budget *budget; /* memory budget; NULL: no limit */
} laci_refine_options;

typedef struct laci_refined {
  bool kept; /* true: training lowered the error on the held-back samples; false: it did not, and
                `weights` is empty */
  int64_t steps, batch;         /* number of steps, and of the samples in each */
  double seconds, step_seconds; /* duration of the whole call (seconds), and median duration of a
                                   step (step_seconds) */
  double loss_first, loss_last; /* loss of the first and of the last step */
  laci_output_difference before, after; /* how the student's outputs differ from the teacher's on
                                           the held-back samples, before and after training */
  int n_stored;
  uint8_t **weights; /* [n_stored] new bytes of each stored tensor, in its type, from laci_alloc;
                        NULL: unchanged. A caller that takes an entry over sets it to NULL */
} laci_refined;

/** Trains a copy of the student towards the teacher. Both must have the same graph, and both stay
 * unchanged. The result has the same bytes for the same number of steps and of threads. Fails
 * LAC_BAD_ARGUMENT (neither seconds nor steps, no samples), as laci_reconstruct_create,
 * laci_compare_outputs, samples->fetch; LAC_BAD_VALUE where the loss becomes NaN or infinite;
 * LAC_INTERRUPTED. */
LAC_MUST_CHECK lac_status laci_refine_towards_teacher(const laci_weighted_graph *student,
                                                      const laci_weighted_graph *teacher,
                                                      const laci_calibration_samples *samples,
                                                      const laci_refine_options *options,
                                                      laci_refined *refined, lac_error *err);
void laci_refined_clear(laci_refined *refined);

#endif
