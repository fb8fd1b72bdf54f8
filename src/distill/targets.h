/* SPDX-License-Identifier: Apache-2.0
 * Provides batches of samples with the teacher's targets, epoch by epoch, each in a new random
 * order from a seed. Samples that fit into memory are read once, and the teacher runs on them once.
  */
#ifndef LACI_DISTILL_TARGETS_H
#define LACI_DISTILL_TARGETS_H

#include "calibrate/samples.h"

typedef struct laci_reconstruct laci_reconstruct;
typedef struct laci_distill_targets laci_distill_targets;

typedef struct laci_distill_targets_options {
  int64_t first, n; /* samples to use: n samples from sample `first` on; n >= batch */
  int64_t batch;    /* number of samples in a batch, as in laci_reconstruct_options */
  uint64_t seed;
  uint64_t most_bytes;       /* limit of the bytes of samples and targets that are kept in memory;
                                0: none are kept */
  laci_pool *pool;           /* threads; NULL: one thread */
  const laci_budget *budget; /* memory budget, which also limits what is kept; NULL: no limit */
} laci_distill_targets_options;

/** Creates the source of batches. The reconstruction and the samples must outlive it. Fails
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_distill_targets_create(laci_reconstruct *reconstruct,
                                                      const laci_calibration_samples *samples,
                                                      const laci_distill_targets_options *options,
                                                      laci_distill_targets **made, lac_error *err);
void laci_distill_targets_destroy(laci_distill_targets *targets); /* NULL is fine */

/** Sets *images and *targets to the next batch: images [batch, ...], and [batch, ...] for each
 * target k. They are views, valid until the next call. Fails as samples->fetch and
 * laci_reconstruct_run_teacher. */
LAC_MUST_CHECK lac_status laci_distill_targets_next_batch(laci_distill_targets *from,
                                                          const float **images,
                                                          const float *const **targets,
                                                          lac_error *err);

#endif
