/* SPDX-License-Identifier: Apache-2.0
 * A training shared by several processes: all hold the same weights, masks, statistics and state of
 * the optimizer between two steps, and each computes gradients of batches of its own.
 *
 * In a step every process takes its batches, votes whether it could, and computes. As soon as a
 * bucket of gradients is final, its sum over all processes begins, while backward goes on. Last
 * come the running statistics, of which the mean is taken, and the loss. So a step of P processes
 * and A batches each is one of A * P batches of one process, with the same sums in the same order;
 * only running statistics are means where one process's follow each other.
 *
 * NULL is a process alone. Next: comm/comm.h, trainer.h (buckets), same_state.h. */
#ifndef LACI_TRAIN_SHARE_H
#define LACI_TRAIN_SHARE_H

#include "comm/comm.h"

typedef struct laci_trace laci_trace;
typedef struct laci_trainer laci_trainer;

typedef struct laci_share laci_share;

typedef struct laci_share_options {
  laci_comm *comm;
  laci_wire wire; /* of gradients; statistics and losses are f32 and double */
  size_t bucket;  /* bytes of gradients that are reduced at a time */
} laci_share_options;

/** Comm and trainer outlive it. Fails LAC_NO_MEMORY on all processes alike, LAC_PEER. */
LAC_MUST_CHECK lac_status laci_share_create(laci_trainer *trainer,
                                            const laci_share_options *options, laci_share **share,
                                            lac_error *err);
void laci_share_destroy(laci_share *share); /* NULL is fine */
/** All that a training holds becomes process 0's: weights, state of the optimizer, statistics,
 * averages, masks [laci_optimizer_size] (or NULL), and a note of the caller's. Fails LAC_PEER. */
LAC_MUST_CHECK lac_status laci_share_state(laci_share *share, uint8_t *masks, void *note,
                                           size_t note_bytes, lac_error *err);

/** A batch of a step that is not the last: as laci_trainer_batch, whatever interrupts this process.
 * Its loss is added to *loss. */
LAC_MUST_CHECK lac_status laci_share_early(laci_share *share, const float *images,
                                           const float *labels, double *loss, lac_error *err);
/** The last batch of a step, as laci_trainer_batch; then gradients are the sums over all processes,
 * statistics their means, and *loss the mean of all: the caller gives its own batches' before this
 * one, summed (0: none), and how many there are with it. Fails on all processes alike where one
 * could not take its batch or was interrupted before it; as laci_trainer_batch; LAC_PEER. */
LAC_MUST_CHECK lac_status laci_share_batch(laci_share *share, const float *images,
                                           const float *labels, int n_batches, double *loss,
                                           lac_error *err);
/** In the place of it, for a process that has no batch: `mine` says why; n_batches: those of a
 * step, which the others may have to do first. Returns the failure that all processes end the step
 * with.
 */
lac_status laci_share_give_up(laci_share *share, lac_status mine, int n_batches, lac_error *err);

/** How the last step went. */
typedef struct laci_share_times {
  double busy;   /* seconds in which gradients were summed */
  double waited; /* seconds of these that the step waited for them at its end */
} laci_share_times;
laci_share_times laci_share_last(const laci_share *share);

/** How many sums of gradients a step has; NULL: 0. */
int laci_share_sums(const laci_share *share);
/** From now on every step's last batch is recorded there; both may be NULL. */
void laci_share_record(laci_share *share, laci_trace *trace);

#endif
