/* SPDX-License-Identifier: Apache-2.0
 * Re-estimates the running statistics of batch normalization from samples without labels: after
 * pruning, the outputs of layers have other means and variances than the stored ones.
 *
 *   mean = 1/K sum over batches k of mean_k,    var = 1/K sum over k of var_k (unbiased)
 *
 * Every batch runs forward once as in training: each layer normalizes by the batch's own
 * statistics, so later layers get inputs like those after recalibration. Sun et al., "Hybrid 8-bit
 * Floating Point Training and Inference" (2019), and others under the name of BatchNorm
 * re-estimation. The samples should be augmented as those that the network was trained on. Next:
 * graph/training_graph.h. */
#ifndef LACI_CALIBRATE_RECALIBRATE_H
#define LACI_CALIBRATE_RECALIBRATE_H

#include "calibrate/samples.h"

typedef struct laci_pool laci_pool;

typedef struct laci_recalibrate_options {
  int64_t batch;             /* number of samples in a batch, at most n. Small batches give poor
                                variances */
  int64_t first, n;          /* samples that are read: n samples from sample `first` on; those that
                                do not fill a batch are left out */
  laci_pool *pool;           /* threads that run several batches at the same time; NULL: batches are
                                run one by one */
  const laci_budget *budget; /* memory budget; NULL: no limit */
} laci_recalibrate_options;

typedef struct laci_recalibrated {
  int n_norms;       /* number of BatchNormalization nodes whose statistics were estimated */
  int64_t n_batches; /* number of batches from which the statistics were estimated */
} laci_recalibrated;

/** Estimates the running means and variances of batch normalizations, and writes them into the
 * model's stored tensors, in the tensors' types; on failure these are unchanged. The result has the
 * same bytes for any number of threads. Fails LAC_UNSUPPORTED if no BatchNormalization of the
 * network has statistics of its own (they may be folded into weights), and as
 * laci_training_graph_create; LAC_BAD_SHAPE for samples that do not fit the input; LAC_BAD_VALUE
 * where a statistic is not finite; LAC_INTERRUPTED, LAC_MEMORY_LIMIT, LAC_NO_MEMORY, and as
 * samples->fetch. */
LAC_MUST_CHECK lac_status laci_recalibrate_batch_norms(laci_graph *model,
                                                       const laci_calibration_samples *samples,
                                                       const laci_recalibrate_options *options,
                                                       laci_recalibrated *result, lac_error *err);

#endif
