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
                                              samples->held_back ones, at least one, judge the
                                              result */
  int64_t first_changed; /* index of the first sample that is augmented as in training; all samples
                            from it to those held back are. The statistics are estimated on these
                            samples, or on all if there are none */
  bool recalibrate;      /* true: re-estimate the statistics of batch normalization */
  double seconds;        /* time in seconds for training towards the dense network; 0: no
                            training */
  int64_t steps;         /* number of training steps, however long they take; 0: as many as fit into
                            `seconds` */
  uint64_t seed;
} laci_distill_options;

/** The result. Errors are those of the outputs on the samples held back. */
typedef struct laci_distilled {
  double error_fitted;       /* error of the outputs after the fits of the layers */
  bool recalibrated;         /* the statistics of batch normalization were re-estimated, and the new
                                ones are kept */
  double error_recalibrated; /* error of the outputs with the re-estimated statistics; 0: they were
                                not re-estimated */
  bool refined;              /* training steps were taken, and their result is kept */
  double error_refined;      /* error of the outputs after the training steps, even if their result
                                was not kept; 0: no steps were taken */
  int64_t steps;
  double seconds;
  const char *reason; /* why a requested improvement could not be done, a text in the pruning's
                         arena; NULL: all were done */
} laci_distilled;

/** Improves the pruned network as a whole. Call it between laci_prune_begin and laci_prune_end,
 * with the same options: it replaces weights in pruning->fitted and pruning->weights by better
 * ones. A pruning without fitted layers stays unchanged. Fails LAC_INTERRUPTED, LAC_NO_MEMORY, and
 * as samples->fetch. If the network or the memory limit does not allow an improvement, to->reason
 * says so instead. */
LAC_MUST_CHECK lac_status laci_distill(laci_pruning *pruning, const laci_prune_options *options,
                                       const laci_distill_options *how, laci_pool *pool,
                                       laci_distilled *to, lac_error *err);

#endif
