/* SPDX-License-Identifier: Apache-2.0
 * Samples and what the teacher makes of them, batch after batch in an order that follows from a
 * seed: epochs, each another permutation. What fits into memory is read, and answered by the
 * teacher, once. */
#ifndef LACI_DISTILL_TARGETS_H
#define LACI_DISTILL_TARGETS_H

#include "calibrate/samples.h"

typedef struct laci_reconstruct laci_reconstruct;
typedef struct laci_distill_targets laci_distill_targets;

typedef struct laci_distill_targets_options {
  int64_t first, n; /* samples; n >= batch */
  int64_t batch;    /* that of the reconstruction */
  uint64_t seed;
  uint64_t most_bytes;       /* of samples and targets that are kept; 0: none are */
  laci_pool *pool;           /* NULL: one thread */
  const laci_budget *budget; /* what is kept is within it; NULL: no limit */
} laci_distill_targets_options;

/** The reconstruction and the samples must outlive it. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_distill_targets_create(laci_reconstruct *reconstruct,
                                                      const laci_calibration_samples *samples,
                                                      const laci_distill_targets_options *options,
                                                      laci_distill_targets **made, lac_error *err);
void laci_distill_targets_destroy(laci_distill_targets *targets); /* NULL is fine */

/** The next batch: images [batch, ...], targets[k] [batch, ...]; views, until the next one. Fails
 * as samples->fetch and laci_reconstruct_teach. */
LAC_MUST_CHECK lac_status laci_distill_targets_next(laci_distill_targets *from,
                                                    const float **images,
                                                    const float *const **targets, lac_error *err);

#endif
