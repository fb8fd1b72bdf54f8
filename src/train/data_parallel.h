/* SPDX-License-Identifier: Apache-2.0
 * Data-parallel training by several processes. Between two steps all hold the same weights, masks,
 * statistics and optimizer state; in a step each computes the gradients of its own batches.
 *
 * In a step every process reads its batches, votes whether it could, and computes. As soon as a
 * bucket of gradients is final, its sum over all processes begins, while the backward pass
 * continues. At the end the mean of the running statistics and of the loss is computed. So a step
 * of P processes with A batches each equals a step of one process with A * P batches, with the same
 * sums in the same order. Only the running statistics differ: they are means over processes, where
 * a single process updates them batch after batch.
 *
 * A share that is NULL means a single process. Next: comm/comm.h, trainer.h (buckets),
 * same_state.h. */
#ifndef LACI_TRAIN_DATA_PARALLEL_H
#define LACI_TRAIN_DATA_PARALLEL_H

#include "comm/comm.h"

typedef struct laci_trace laci_trace;
typedef struct laci_trainer laci_trainer;

typedef struct laci_data_parallel laci_data_parallel;

typedef struct laci_data_parallel_options {
  laci_comm *comm;
  laci_wire wire; /* format in which gradients are sent; statistics are sent as f32, losses as
                     double */
  size_t bucket;  /* bytes of gradients that are reduced at a time */
} laci_data_parallel_options;

/** Creates the state of training by several processes; comm and trainer must outlive it. Fails
 * LAC_NO_MEMORY on all processes alike, LAC_PEER. */
LAC_MUST_CHECK lac_status laci_data_parallel_create(laci_trainer *trainer,
                                                    const laci_data_parallel_options *options,
                                                    laci_data_parallel **share, lac_error *err);
void laci_data_parallel_destroy(laci_data_parallel *share); /* NULL is fine */
/** Copies the whole state of the training from process 0 to all: weights, optimizer state,
 * statistics, averages, masks [laci_optimizer_size] (or NULL), and `note`, bytes of the caller.
 * Fails LAC_PEER. */
LAC_MUST_CHECK lac_status laci_data_parallel_broadcast_state(laci_data_parallel *share,
                                                             uint8_t *masks, void *note,
                                                             size_t note_bytes, lac_error *err);

/** Computes a batch of a step other than the last one, as laci_trainer_run_batch; an interrupt does
 * not end it. Its loss is added to *loss. */
LAC_MUST_CHECK lac_status laci_data_parallel_run_early_batch(laci_data_parallel *share,
                                                             const float *images,
                                                             const float *labels, double *loss,
                                                             lac_error *err);
/** Computes the last batch of a step, as laci_trainer_run_batch. Afterwards gradients are the sums
 * over all processes, and statistics their means. *loss in: the sum of the losses of this process's
 * earlier batches of the step (0: none); out: the mean over all batches and processes. n_batches:
 * batches of this process in the step, this one included. Fails on all processes alike where one
 * could not read its batch or was interrupted before it; as laci_trainer_run_batch; LAC_PEER. */
LAC_MUST_CHECK lac_status laci_data_parallel_run_last_batch(laci_data_parallel *share,
                                                            const float *images,
                                                            const float *labels, int n_batches,
                                                            double *loss, lac_error *err);
/** Called instead of laci_data_parallel_run_last_batch by a process that has no batch. mine: the
 * reason; n_batches: batches of a step, which the other processes may have to finish first. Returns
 * the failure with which all processes end the step.
 */
lac_status laci_data_parallel_end_failed_step(laci_data_parallel *share, lac_status mine,
                                              int n_batches, lac_error *err);

/** Times of the communication in the last step. */
typedef struct laci_data_parallel_times {
  double busy;   /* seconds during which sums of gradients were in progress */
  double waited; /* seconds of `busy` in which the step had to wait for the sums at its end */
} laci_data_parallel_times;
laci_data_parallel_times laci_data_parallel_times_of_last_step(const laci_data_parallel *share);

/** Returns the number of buckets of gradients, each of which is summed over all processes once a
 * step; 0 for NULL. */
int laci_data_parallel_count_buckets(const laci_data_parallel *share);
/** Records the last batch of every following step in `trace`; both may be NULL. */
void laci_data_parallel_set_trace(laci_data_parallel *share, laci_trace *trace);

#endif
