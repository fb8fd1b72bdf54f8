/* SPDX-License-Identifier: Apache-2.0
 * The training loop: steps, evaluations, checkpoints, and the end of a run.
 *
 *     repeat: evaluate if it is due; save if it is due; stop at the end; take one step
 *
 * A step depends only on its number and on the state that a checkpoint holds. So a run that was
 * interrupted anywhere and continues from its newest checkpoint ends with the same bits. How to
 * evaluate, and what to call at each event, is the caller's choice (hooks).
 *
 * Several processes run the same loop over their own batches (data_parallel.h). Process 0 reads and
 * writes checkpoints, and all end with the same status. Next: trainer.h, a step; feed.h;
 * snapshot.h. */
#ifndef LACI_TRAIN_LOOP_H
#define LACI_TRAIN_LOOP_H

#include "train/feed.h"
#include "train/schedule.h"

typedef struct laci_data_parallel_options laci_data_parallel_options;
typedef struct laci_trainer laci_trainer;

typedef struct laci_loop_score {
  double top1, top5; /* top-1 and top-5 accuracy in percent */
  double loss;
} laci_loop_score;

typedef enum laci_loop_kind {
  LACI_LOOP_BEGIN, /* the run begins; laci_loop_event.step is 0, or the step of the checkpoint from
                      which it continues */
  LACI_LOOP_STEP,
  LACI_LOOP_SCORE,
  LACI_LOOP_SAVED,
} laci_loop_kind;

typedef struct laci_loop_event {
  laci_loop_kind kind;
  int64_t step, epoch; /* steps taken and epochs completed so far */
  int64_t steps;       /* steps of the whole run */
  double loss, rate;   /* at LACI_LOOP_STEP: the mean loss before the update, and the learning rate
                          of the update */
  double images_per_second, seconds_left;
  double top1;           /* at LACI_LOOP_STEP: percent of this process's images that the network
                            classified correctly before the update; of blended images the larger
                            part counts */
  laci_loop_score score; /* at LACI_LOOP_SCORE: the result of the evaluation */
  bool is_best;
} laci_loop_event;

typedef struct laci_loop_hooks {
  /** Evaluates the network in the trainer's current state (with averages in the weights' place, if
   * it keeps them). NULL: it is never evaluated. With several processes, each calls it, and all
   * must get the same score. */
  lac_status (*evaluate)(void *context, laci_loop_score *score, lac_error *err);
  /** Called at every event; a failure ends the run. */
  lac_status (*on_event)(void *context, const laci_loop_event *event, lac_error *err);
  void *context;
} laci_loop_hooks;

typedef struct laci_loop_options {
  laci_feed_options feed;
  int accumulate; /* batches in a step, >= 1 */
  laci_schedule schedule;
  int64_t steps, steps_per_epoch; /* number of steps of the whole run, and of an epoch, >= 1 */
  int64_t eval_every;             /* number of steps from one evaluation to the next; 0: only at the
                                     end */
  int64_t checkpoint_every;       /* number of steps from one checkpoint to the next, >= 1 */
  int64_t steps_per_loop;         /* evaluations and checkpoints are delayed to a multiple of this;
                                     >= 1 */
  double stop_threshold;          /* top-1 in percent at which the run ends; < 0: none */
  bool keep_best;                 /* at the end the trainer holds the best evaluated weights */
  bool eval_first;                /* evaluates once before the very first step, as a reference: the
                                     score is never the best one, does not end the run, and is not
                                     repeated when a run continues */
  bool eval_only;                 /* takes no step: evaluates the given weights, or with `recover`
                                     those of the checkpoint */
  const char *folder;             /* folder for checkpoints, which must exist; NULL: none are
                                      written */
  int keep;                       /* number of checkpoints to keep, >= 1 */
  bool recover;                   /* continue from the newest checkpoint, if there is one */
  const char *about;              /* the run's options as the members of a JSON object (without
                                     braces), for information */
  uint8_t *masks;                 /* [laci_optimizer_size] 0 or 1, as set in the optimizer; NULL:
                                     dense */
  const laci_data_parallel_options *share; /* how several processes share the work; NULL: a single
                                      process */
  bool trace;       /* records the last steps; laci_loop_result.trace has the text */
  int64_t paranoid; /* interval in steps at which processes compare their state, in
                                      addition to the first step and checkpoints, where they always
                                      do; 0: none */
} laci_loop_options;

typedef struct laci_loop_result {
  int64_t step, first_step; /* step: steps taken in total; first_step: of these, taken by an earlier
                               run */
  double loss;              /* loss of the last step; NaN: no step was taken */
  bool evaluated;
  laci_loop_score score; /* score of the last evaluation in this run */
  int64_t evaluated_step;
  double best_top1; /* < 0: none */
  double best_top5; /* top-5 of the evaluation with the best top-1; NaN: an earlier run found it and
                       did not record its top-5 */
  int64_t best_step;
  bool reached;             /* stop_threshold was reached */
  double images_per_second; /* running mean over all processes together */
  char *trace;              /* JSON (train/trace.h), to be freed; NULL: not asked for, or not
                               process 0 */
  double comm_seconds;      /* seconds during which sums over processes were in progress */
  double comm_waited;       /* seconds of these during which steps waited for the sums */
  double step_seconds;      /* duration of all steps of this run, without evaluations and
                               checkpoints */
} laci_loop_result;

/** Trains. Fails LAC_BAD_VALUE if the loss or weights are no longer finite, and names the step;
 * earlier checkpoints are kept. Fails LAC_INTERRUPTED after saving a checkpoint, if there is a
 * folder. If a batch cannot be read or an evaluation fails, saves a checkpoint and fails likewise.
 * Fails LAC_PEER if a process was lost; process 0 then saves the state after the last complete
 * step. Also fails as checkpoints, the plan, hooks and comparisons do. After a failure the trainer
 * has the weights of the last step; after success their averages, if it keeps them. */
LAC_MUST_CHECK lac_status laci_loop_run(laci_trainer *trainer, const laci_dataset *set,
                                        const laci_loop_options *options,
                                        const laci_loop_hooks *hooks, laci_loop_result *result,
                                        lac_error *err);

/** Removes the folder's checkpoints and best weights, before a new run begins. Fails LAC_IO. */
LAC_MUST_CHECK lac_status laci_loop_remove_checkpoints(const char *folder, lac_error *err);
/** Does the folder hold checkpoints? */
bool laci_loop_has_checkpoints(const char *folder);

#endif
