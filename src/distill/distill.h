/* SPDX-License-Identifier: Apache-2.0
 * A pruned network as a whole, after the fits of its layers: statistics of batch normalization
 * again (recalibrate.h), then steps towards the dense network (refine.h). Each is kept only where
 * the outputs err less on the samples that are held back. */
#ifndef LACI_DISTILL_DISTILL_H
#define LACI_DISTILL_DISTILL_H

#include "calibrate/samples.h"

typedef struct laci_prune_options laci_prune_options;
typedef struct laci_pruning laci_pruning;

typedef struct laci_distill_options {
  const laci_calibration_samples *samples; /* held_back of them, the last ones, one at least */
  int64_t first_changed; /* samples from here to those held back are changed as training changes
                            images: what statistics are estimated on. None: all are */
  bool recalibrate;      /* batch normalization's statistics are estimated again */
  double seconds;        /* of steps towards the dense network; 0: none */
  int64_t steps;         /* in the place of seconds; 0: as many as fit */
  uint64_t seed;
} laci_distill_options;

/** What came of it. Errors are those of the outputs on what is held back. */
typedef struct laci_distilled {
  double error_fitted;       /* as the fits of layers left them */
  bool recalibrated;         /* statistics were estimated again before any step, and are kept */
  double error_recalibrated; /* with these; 0: not tried */
  bool refined;              /* steps were taken, and what they made is kept */
  double error_refined;      /* with what they made, kept or not; 0: no step */
  int64_t steps;
  double seconds;
  const char *reason; /* why something that was asked for could not be done, a text of the pruning;
                         NULL: it could */
} laci_distilled;

/** Between laci_prune_begin and laci_prune_end of the same options: weights of `fitted` and others
 * of the pruning become those that are kept. A pruning that fitted nothing stays as it is. Fails
 * LAC_INTERRUPTED, LAC_NO_MEMORY, as samples are fetched; what the network or memory does not allow
 * is a reason in the result. */
LAC_MUST_CHECK lac_status laci_distill(laci_pruning *pruning, const laci_prune_options *options,
                                       const laci_distill_options *how, laci_pool *pool,
                                       laci_distilled *to, lac_error *err);

#endif
