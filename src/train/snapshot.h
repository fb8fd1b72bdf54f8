/* SPDX-License-Identifier: Apache-2.0
 * The complete state of a training run, written to a checkpoint and read back bit for bit.
 *
 * Random numbers have no state (base/rng.h): the seed and the number of the step are all there is.
 * Next: checkpoint.h, the file. */
#ifndef LACI_TRAIN_SNAPSHOT_H
#define LACI_TRAIN_SNAPSHOT_H

#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_checkpoint laci_checkpoint;
typedef struct laci_optimizer laci_optimizer;
typedef struct laci_parameter laci_parameter;

/** The state of a run, in buffers of the caller, which laci_snapshot_read_checkpoint fills. */
typedef struct laci_snapshot {
  int64_t step;  /* number of steps taken so far */
  int64_t epoch; /* number of whole epochs completed so far */
  uint64_t seed;
  double best_top1; /* best top-1 of all evaluations so far; < 0: none */
  int64_t best_step;
  uint64_t structure;  /* hash of the parameters in the buffers: laci_parameters_hash */
  const char *options; /* JSON: recipe and options of the run, for information and for continuing
                          it */
  float *weights;      /* [n_weights] all parameters, as in the optimizer's buffers */
  int64_t n_weights;   /* number of weights: the size of the optimizer's buffers */
  float *statistics;   /* [n_statistics]: running means and variances */
  int64_t n_statistics;
  float *average;            /* [n_weights]: average of the weights over the steps; NULL: none is
                                kept */
  float *average_statistics; /* [n_statistics]: average of the statistics; NULL where average is */
  uint8_t *masks;            /* [n_weights] bytes 0 or 1; NULL: nothing is masked */
  laci_optimizer *optimizer;
} laci_snapshot;

/** Returns a hash of the parameters' names, places and kinds, in order. */
uint64_t laci_parameters_hash(const laci_parameter *parameters, int n);

/** Writes the snapshot to the folder (laci_checkpoint_write). Masks are stored as bits. */
LAC_MUST_CHECK lac_status laci_snapshot_write_checkpoint(const char *folder,
                                                         const laci_snapshot *snapshot, int keep,
                                                         lac_error *err);

/** Fills the snapshot's buffers, optimizer and numbers. `structure`, both counts, and the kind and
 * slots of the optimizer are the caller's and must be those that were written, and so must be
 * whether averages are kept, else LAC_BAD_FILE saying what differs. `masks` must be given where the
 * checkpoint has some (they become 0 and 1), and are all 1 where it has none. `options` is a view
 * into the checkpoint. On failure the buffers are as they were. */
LAC_MUST_CHECK lac_status laci_snapshot_read_checkpoint(const laci_checkpoint *checkpoint,
                                                        laci_snapshot *snapshot, lac_error *err);

#endif
