/* SPDX-License-Identifier: Apache-2.0
 * Trains a network by several processes (data-parallel training). Between two steps all processes
 * hold the same weights, masks, statistics and optimizer state. In a step each computes the
 * gradients of its own batches.
 *
 * In a step every process reads its batches, votes whether it could, and computes. A bucket is a
 * range of the gradients. As soon as it is final, its sum over all processes begins, while the
 * backward pass continues. At the end the mean of the running statistics and of the loss is
 * computed. So a step of P processes with A batches each equals a step of one process with A * P
 * batches, with the same sums in the same order. Only the running statistics differ: they are means
 * over processes, where a single process updates them batch after batch.
 *
 * All functions accept a NULL share, which means a single process. Next: comm/comm.h, trainer.h
 * (buckets), same_state.h. */
#ifndef LACI_TRAIN_DATA_PARALLEL_H
#define LACI_TRAIN_DATA_PARALLEL_H

#include "comm/comm.h"

typedef struct laci_trace laci_trace;
typedef struct laci_trainer laci_trainer;

typedef struct laci_data_parallel laci_data_parallel;

typedef struct laci_data_parallel_options {
  laci_comm *comm;
  laci_wire wire; /* number format in which gradients are sent; statistics are sent as f32, losses
                     as double */
  size_t bucket;  /* size of a bucket, in bytes: gradients that are summed at a time */
} laci_data_parallel_options;

/** Creates the state of a training by several processes. comm and trainer must outlive it. Fails
 * with LAC_NO_MEMORY, in all processes alike, or with LAC_PEER. */
LAC_MUST_CHECK lac_status laci_data_parallel_create(laci_trainer *trainer,
                                                    const laci_data_parallel_options *options,
                                                    laci_data_parallel **share, lac_error *err);
void laci_data_parallel_destroy(laci_data_parallel *share); /* share may be NULL */
/** Copies the whole state of the training from process 0 to all others: weights, optimizer state,
 * statistics, averages, masks [laci_optimizer_count_floats] (or NULL), and note_bytes bytes of the
 * caller at `note`. Fails with LAC_PEER. */
LAC_MUST_CHECK lac_status laci_data_parallel_broadcast_state(laci_data_parallel *share,
                                                             uint8_t *masks, void *note,
                                                             size_t note_bytes, lac_error *err);

/** Computes a batch of a step that is not its last one, as laci_trainer_run_batch does. An
 * interrupt does not end it. The batch's loss is added to *loss. */
LAC_MUST_CHECK lac_status laci_data_parallel_run_early_batch(laci_data_parallel *share,
                                                             const float *images,
                                                             const float *labels, double *loss,
                                                             lac_error *err);
/** Computes the last batch of a step, as laci_trainer_run_batch does. Afterwards gradients are the
 * sums over all processes, and statistics their means.
 *
 * *loss: before, the sum of the losses of this process's earlier batches of the step (0: none);
 * afterwards, the mean over all batches and processes. n_batches: number of batches of this process
 * in the step, including this one. Fails in all processes alike if one of them could not read its
 * batch, or was interrupted before it. Also fails as laci_trainer_run_batch does, or with
 * LAC_PEER. */
LAC_MUST_CHECK lac_status laci_data_parallel_run_last_batch(laci_data_parallel *share,
                                                            const float *images,
                                                            const float *labels, int n_batches,
                                                            double *loss, lac_error *err);
/** A process that has no batch calls this instead of laci_data_parallel_run_last_batch. mine:
 * status that says why. n_batches: number of batches in a step, which the other processes may have
 * to finish first. Returns the failure with which all processes end the step. */
lac_status laci_data_parallel_end_failed_step(laci_data_parallel *share, lac_status mine,
                                              int n_batches, lac_error *err);

/** How long communication took in the last step. */
typedef struct laci_data_parallel_times {
  double busy;   /* seconds during which sums of gradients were in progress */
  double waited; /* seconds of `busy` in which the step had finished its batches and waited for the
                    sums */
} laci_data_parallel_times;
laci_data_parallel_times laci_data_parallel_times_of_last_step(const laci_data_parallel *share);

/** Returns the number of buckets (ranges of the gradients that are summed over all processes once a
 * step); 0 if share is NULL. */
int laci_data_parallel_count_buckets(const laci_data_parallel *share);
/** Makes the last batch of every following step be recorded in `trace`. Both may be NULL. */
void laci_data_parallel_set_trace(laci_data_parallel *share, laci_trace *trace);

#endif
