/* SPDX-License-Identifier: Apache-2.0
 * The state of a running loop, shared by loop.c (the order of events) and loop_state.c (checkpoints
 * and best weights). */
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
  laci_comm *comm; /* comm and share: NULL for a single process */
  laci_data_parallel *share;
  laci_trace *trace;              /* trace of the last steps; NULL: nothing is recorded */
  int64_t compared;               /* the last step after which processes compared their state; -1:
                                     never */
  int64_t step;                   /* number of steps taken so far */
  int64_t evaluated, saved;       /* the step of the last evaluation, and of the last checkpoint; 0:
                                     none */
  double first_loss, most_rate;   /* first_loss: loss of this run's first step (NaN: none yet);
                                     most_rate: the largest rate so far */
  double first_score, best_score; /* losses of evaluations: before the first step, and the best one
                                     of this run; NaN: none */
  double best_top1;               /* < 0: none */
  double best_top5;               /* top-5 of the evaluation with the best top-1; NaN: not known */
  int64_t best_step;
  double seconds_a_step; /* seconds for a step, as a running mean */
  int64_t n_right;       /* number of images of the present step so far that the network classified
                            correctly */
  bool stopped; /* the run ended between two steps because images could not be read, so the state
                   may be saved */
  uint64_t structure;
  float *weights, *statistics; /* buffers of the trainer */
  int64_t n_weights, n_statistics;
  float *statistics_before;              /* statistics before the current step */
  float *best_weights, *best_statistics; /* copies of the weights and statistics with the best
                                            score; NULL: they are not kept */
  bool best_is_lost;                     /* the checkpoint refers to best weights whose file does
                                            not exist any more */
  lac_error untold;                      /* a failure of this process's log, which is reported at
                                            the next vote */
  char saved_text[128];                  /* the text that laci_loop_saved_checkpoint_text returns */
} laci_loop;

/** Allocates the state, and finds the trainer's buffers. Fails on all processes alike. */
LAC_MUST_CHECK lac_status laci_loop_allocate_state(laci_loop *loop, lac_error *err);
void laci_loop_clear_state(laci_loop *loop);

/** Fails LAC_BAD_VALUE where a weight or a statistic is NaN or infinite. */
LAC_MUST_CHECK lac_status laci_loop_check_finite(const laci_loop *loop, lac_error *err);
/** Writes a checkpoint of this step; fails instead where numbers are not finite. */
LAC_MUST_CHECK lac_status laci_loop_save_checkpoint(laci_loop *loop, lac_error *err);
/** Is this process 0 (or a single process), which reads and writes files? */
bool laci_loop_is_first_process(const laci_loop *loop);
/** Checks that all processes hold the same state, at most once after a step. */
LAC_MUST_CHECK lac_status laci_loop_compare_processes(laci_loop *loop, lac_error *err);
/** Restores the newest checkpoint, if options ask for it; without one the run starts from the
 * beginning. Then all processes get the state of process 0. */
LAC_MUST_CHECK lac_status laci_loop_recover_checkpoint(laci_loop *loop, lac_error *err);
/** Keeps the current weights as the best ones, in memory and in the folder. Where averages are
 * kept, they are in the weights' place when this is called. */
LAC_MUST_CHECK lac_status laci_loop_keep_best_weights(laci_loop *loop, lac_error *err);
void laci_loop_restore_best_weights(laci_loop *loop);

/** Returns "; the checkpoint of step N is kept", or an empty text; a view. */
const char *laci_loop_saved_checkpoint_text(const laci_loop *loop);

#endif
