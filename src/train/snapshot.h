/* SPDX-License-Identifier: Apache-2.0
 * The complete state of a training run, which is written to a checkpoint and read back bit for bit.
 *
 * Random numbers have no state (base/rng.h): they follow from the seed and the number of the step.
 * Next: checkpoint.h, the file. */
#ifndef LACI_TRAIN_SNAPSHOT_H
#define LACI_TRAIN_SNAPSHOT_H

#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_checkpoint laci_checkpoint;
typedef struct laci_optimizer laci_optimizer;
typedef struct laci_parameter laci_parameter;

/** The state of a run. Its buffers belong to the caller; laci_snapshot_read_checkpoint fills
 * them. */
typedef struct laci_snapshot {
  int64_t step;  /* number of steps taken so far */
  int64_t epoch; /* number of whole epochs completed so far */
  uint64_t seed;
  double best_top1; /* best top-1 accuracy of all evaluations so far, in percent; < 0: there was
                       none */
  int64_t best_step;
  uint64_t structure;  /* hash of the parameters' names, offsets and kinds: laci_parameters_hash */
  const char *options; /* recipe and options of the run as JSON, for information and for continuing
                          the run */
  float *weights;      /* [n_weights] all parameters, as in the optimizer's buffers */
  int64_t n_weights;   /* number of floats in `weights`, which is the size of the optimizer's
                          buffers */
  float *statistics;   /* [n_statistics] running means and variances */
  int64_t n_statistics;
  float *average;            /* [n_weights] moving average of the weights over the steps; NULL: it
                                is not kept */
  float *average_statistics; /* [n_statistics] moving average of the statistics; NULL if `average`
                                is NULL */
  uint8_t *masks;            /* [n_weights] bytes 0 or 1; NULL: no weight is masked */
  laci_optimizer *optimizer;
} laci_snapshot;

/** Returns a hash of the parameters' names, offsets and kinds, in their order. */
uint64_t laci_parameters_hash(const laci_parameter *parameters, int n);

/** Writes the snapshot to a checkpoint in the folder (laci_checkpoint_write). Masks are stored as
 * bits. */
LAC_MUST_CHECK lac_status laci_snapshot_write_checkpoint(const char *folder,
                                                         const laci_snapshot *snapshot, int keep,
                                                         lac_error *err);

/** Fills the snapshot's buffers, optimizer and numbers from a checkpoint. The caller sets
 * `structure`, both counts, and the kind and number of slots of the optimizer. These must be as
 * they were written, and so must be whether averages are kept; else it fails with LAC_BAD_FILE,
 * whose text says what differs. `masks` must be set if the checkpoint has masks, which become 0 and
 * 1; if it has none, all become 1. `options` is a text that belongs to the checkpoint. After a
 * failure the buffers are as they were. */
LAC_MUST_CHECK lac_status laci_snapshot_read_checkpoint(const laci_checkpoint *checkpoint,
                                                        laci_snapshot *snapshot, lac_error *err);

#endif
