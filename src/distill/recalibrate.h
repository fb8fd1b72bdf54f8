/* SPDX-License-Identifier: Apache-2.0
 * Batch normalization's running statistics estimated again from samples without labels: after
 * pruning, what layers give has other means and variances than those that are stored.
 *
 *   mean = 1/K sum over batches k of mean_k,    var = 1/K sum over k of var_k (unbiased)
 *
 * Every batch goes forward once as in training: each layer normalizes by the batch's own
 * statistics, so that later layers see what they will see. Sun et al., "Hybrid 8-bit Floating Point
 * Training and Inference" (2019), and others under the name of BatchNorm re-estimation. The samples
 * should be changed as those were that the network was trained on. Next: graph/training_graph.h. */
#ifndef LACI_DISTILL_RECALIBRATE_H
#define LACI_DISTILL_RECALIBRATE_H

#include "calibrate/samples.h"

typedef struct laci_pool laci_pool;

typedef struct laci_recalibrate_options {
  int64_t batch;             /* samples at a time; of fewer samples, all. Small ones make poor
                                variances */
  int64_t first, n;          /* samples that are read; what does not fill a batch is left out */
  laci_pool *pool;           /* batches at the same time; NULL: one after the other */
  const laci_budget *budget; /* NULL: no limit */
} laci_recalibrate_options;

typedef struct laci_recalibrated {
  int n_norms;       /* running means that were estimated */
  int64_t n_batches; /* from so many batches */
} laci_recalibrated;

/** Writes new running means and variances into the model's stored tensors, in their own types; on
 * failure they are as before. The same bytes for any number of threads. Fails LAC_UNSUPPORTED where
 * the network has no BatchNormalization with statistics of its own (they may be folded into
 * weights), and as laci_training_graph_create; LAC_BAD_SHAPE for samples that do not fit the input;
 * LAC_BAD_VALUE where a statistic is no finite number; LAC_INTERRUPTED, LAC_MEMORY_LIMIT,
 * LAC_NO_MEMORY, and as samples->fetch. */
LAC_MUST_CHECK lac_status laci_recalibrate(laci_graph *model,
                                           const laci_calibration_samples *samples,
                                           const laci_recalibrate_options *options,
                                           laci_recalibrated *result, lac_error *err);

#endif
