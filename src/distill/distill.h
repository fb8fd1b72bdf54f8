/* SPDX-License-Identifier: Apache-2.0
 * Improves a pruned network as a whole, after the fits of its layers: re-estimates the statistics
 * of batch normalization (recalibrate.h), then trains towards the dense network (refine.h). The
 * result of each is kept only where it lowers the error of the outputs on samples held back. */
#ifndef LACI_DISTILL_DISTILL_H
#define LACI_DISTILL_DISTILL_H

#include "calibrate/samples.h"

typedef struct laci_prune_options laci_prune_options;
typedef struct laci_pruning laci_pruning;

typedef struct laci_distill_options {
  const laci_calibration_samples *samples; /* samples of the network's inputs; the last
                                              samples->held_back of them, at least one, judge the
                                              result */
  int64_t first_changed; /* number of the first sample that is augmented as in training; all samples
                            from it to those held back are. The statistics are estimated on these
                            samples, or on all if there are none */
  bool recalibrate;      /* the statistics of batch normalization are re-estimated */
  double seconds;        /* time for training towards the dense network; 0: none */
  int64_t steps;         /* number of training steps instead of seconds; 0: as many as fit into
                            seconds */
  uint64_t seed;
} laci_distill_options;

/** The result. Errors are those of the outputs on the samples held back. */
typedef struct laci_distilled {
  double error_fitted;       /* error after the fits of the layers */
  bool recalibrated;         /* statistics were re-estimated, and are kept */
  double error_recalibrated; /* error with the new statistics; 0: not tried */
  bool refined;              /* training steps were taken, and their result is kept */
  double error_refined;      /* error after the training steps, even if their result was not kept;
                                0: no steps */
  int64_t steps;
  double seconds;
  const char *reason; /* why a requested step could not be done, a text in the pruning's arena;
                         NULL: all could */
} laci_distilled;

/** To be called between laci_prune_begin and laci_prune_end, with the same options: replaces
 * weights in pruning->fitted and pruning->weights by the improved ones. A pruning without fitted
 * layers stays unchanged. Fails LAC_INTERRUPTED, LAC_NO_MEMORY, and as samples->fetch; where the
 * network or the memory limit does not allow a step, to->reason says so instead. */
LAC_MUST_CHECK lac_status laci_distill(laci_pruning *pruning, const laci_prune_options *options,
                                       const laci_distill_options *how, laci_pool *pool,
                                       laci_distilled *to, lac_error *err);

#endif
