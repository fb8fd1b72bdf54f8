/* SPDX-License-Identifier: Apache-2.0
 * A running loop, as loop.c (what happens when) and loop_state.c (what is kept) share it. */
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
typedef struct laci_share laci_share;
typedef struct laci_trace laci_trace;
typedef struct laci_trainer laci_trainer;

typedef struct laci_loop {
  laci_trainer *trainer;
  const laci_dataset *set;
  const laci_loop_options *options;
  const laci_loop_hooks *hooks;
  laci_loop_result *result;
  laci_feed *feed;
  laci_comm *comm; /* NULL: alone, and the next, too */
  laci_share *share;
  laci_trace *trace;              /* NULL: none is wanted */
  int64_t compared;               /* the step when processes did so last; -1: never */
  int64_t step;                   /* taken */
  int64_t evaluated, saved;       /* the step when that was done last; 0: never */
  double first_loss, most_rate;   /* of this run's first step (NaN: none was taken), and of all */
  double first_score, best_score; /* losses: before the first step, and of the best evaluation of
                                     this run; NaN: there was none */
  double best_top1;               /* < 0: none */
  double best_top5;               /* NaN: not known */
  int64_t best_step;
  double seconds_a_step; /* running mean */
  bool stopped; /* between two steps, by images that cannot be had: all is as it should be */
  uint64_t structure;
  float *weights, *statistics; /* the trainer's */
  int64_t n_weights, n_statistics;
  float *statistics_before;              /* the step */
  float *best_weights, *best_statistics; /* NULL: not wanted */
  bool best_is_lost;                     /* named by the checkpoint, but not there */
  lac_error untold;                      /* of this process's log; told at the next vote */
  char saved_text[128];                  /* laci_loop_saved_text */
} laci_loop;

/** Memory, and what the trainer has. Fails on all processes alike. */
LAC_MUST_CHECK lac_status laci_loop_prepare(laci_loop *loop, lac_error *err);
void laci_loop_clear_state(laci_loop *loop);

/** LAC_BAD_VALUE where a weight or a statistic is no finite number. */
LAC_MUST_CHECK lac_status laci_loop_check_finite(const laci_loop *loop, lac_error *err);
/** A checkpoint of this step; never one of numbers that are not finite. */
LAC_MUST_CHECK lac_status laci_loop_save(laci_loop *loop, lac_error *err);
/** Process 0 reads and writes files; the same for a process alone. */
bool laci_loop_is_first(const laci_loop *loop);
/** Do all processes hold the same? Once after a step. */
LAC_MUST_CHECK lac_status laci_loop_compare_processes(laci_loop *loop, lac_error *err);
/** From the newest checkpoint, where that is wanted; where there is none the run starts from the
 * beginning. Then all processes hold what process 0 does. */
LAC_MUST_CHECK lac_status laci_loop_recover(laci_loop *loop, lac_error *err);
/** Remembers the weights of now as the best; in the folder, too. Where averages are kept, they are
 * in the weights' place now, there too. */
LAC_MUST_CHECK lac_status laci_loop_keep_best(laci_loop *loop, lac_error *err);
void laci_loop_use_best(laci_loop *loop);

/** "; the checkpoint of step N is kept", or nothing; a view. */
const char *laci_loop_saved_text(const laci_loop *loop);

#endif
