/* SPDX-License-Identifier: Apache-2.0
 * The state of a running training loop. loop.c (the order of events) and loop_state.c (checkpoints
 * and best weights) share it. */
#ifndef LACI_TRAIN_LOOP_IN_H
#define LACI_TRAIN_LOOP_IN_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_comm laci_comm;
typedef struct laci_dataset laci_dataset;
typedef struct laci_feed laci_feed;
typedef struct laci_loop_hooks laci_loop_hooks;
typedef struct laci_loop_options laci_loop_options;
typedef struct laci_loop_result laci_loop_result;
typedef struct laci_data_parallel laci_data_parallel;
typedef struct laci_trace laci_trace;
typedef struct laci_trainer laci_trainer;

typedef struct laci_loop {
  laci_trainer *trainer;
  const laci_dataset *set;
  const laci_loop_options *options;
  const laci_loop_hooks *hooks;
  laci_loop_result *result;
  laci_feed *feed;
  laci_comm *comm; /* the group of processes; comm and share are NULL for a single process */
  laci_data_parallel *share;
  laci_trace *trace;              /* trace of the last steps; NULL: nothing is recorded */
  int64_t compared;               /* last step after which processes compared their states; -1: they
                                     never did */
  int64_t step;                   /* number of steps taken so far */
  int64_t evaluated, saved;       /* step of the last evaluation, and of the last checkpoint; 0:
                                     there was none */
  double first_loss, most_rate;   /* first_loss: loss of this run's first step; NaN: there was none
                                     yet. most_rate: largest learning rate so far */
  double first_score, best_score; /* losses of evaluations: first_score before the first step,
                                     best_score the best one of this run; NaN: there was none */
  double best_top1;               /* best top-1 accuracy of all evaluations, in percent; < 0: there
                                     was none */
  double best_top5;               /* top-5 accuracy in the evaluation with the best top-1; NaN: it
                                     is not known */
  int64_t best_step;
  double seconds_a_step; /* running mean of the seconds that a step takes */
  int64_t n_right;       /* number of images of the present step, so far, that the network
                            classified correctly */
  bool stopped; /* true: the run ended between two steps, since an image could not be read or an
                   evaluation failed. So the state may be saved */
  uint64_t structure;
  float *weights, *statistics; /* weights and running statistics: buffers of the trainer */
  int64_t n_weights, n_statistics;
  float *statistics_before;              /* copy of the statistics before the present step */
  float *best_weights, *best_statistics; /* copies of the weights and statistics with the best
                                            evaluation; NULL: they are not kept */
  bool best_is_lost;                     /* true: the checkpoint refers to best weights whose file
                                            no longer exists */
  lac_error unreported;                  /* a failure to report an event, which the other processes
                                            learn of at the next vote */
  char saved_text[128];                  /* the text that laci_loop_saved_checkpoint_text returns */
} laci_loop;

/** Allocates the state, and finds the trainer's buffers. Fails in all processes alike. */
LAC_MUST_CHECK lac_status laci_loop_allocate_state(laci_loop *loop, lac_error *err);
void laci_loop_clear_state(laci_loop *loop);

/** Fails with LAC_BAD_VALUE if a weight or a statistic is NaN or infinite. */
LAC_MUST_CHECK lac_status laci_loop_check_finite(const laci_loop *loop, lac_error *err);
/** Writes a checkpoint of this step. Fails instead if weights or statistics are not finite. */
LAC_MUST_CHECK lac_status laci_loop_save_checkpoint(laci_loop *loop, lac_error *err);
/** Is this process 0, which reads and writes files? True for a single process. */
bool laci_loop_is_first_process(const laci_loop *loop);
/** Checks that all processes hold the same state. Does nothing if this was done after the present
 * step. */
LAC_MUST_CHECK lac_status laci_loop_compare_processes(laci_loop *loop, lac_error *err);
/** If the options ask for it, restores the latest checkpoint; without one the run starts from the
 * beginning. Then copies the state of process 0 to all processes. */
LAC_MUST_CHECK lac_status laci_loop_recover_checkpoint(laci_loop *loop, lac_error *err);
/** Keeps the current weights as the best ones, in memory and in the folder. If moving averages are
 * kept, they must be in the weights' place when this is called. */
LAC_MUST_CHECK lac_status laci_loop_keep_best_weights(laci_loop *loop, lac_error *err);
void laci_loop_restore_best_weights(laci_loop *loop);

/** Returns "; the checkpoint of step N is kept", or an empty text if there is none. The text
 * belongs to `loop`. */
const char *laci_loop_saved_checkpoint_text(const laci_loop *loop);

#endif
