/* SPDX-License-Identifier: Apache-2.0
 * Runs a training: steps, evaluations, checkpoints, and the end of a run.
 *
 *     repeat: evaluate if it is due; save if it is due; stop at the end; take one step
 *
 * A step depends only on its number and on the state that a checkpoint holds. So a run that was
 * interrupted anywhere and continues from its latest checkpoint ends with the same bits. The caller
 * provides functions that evaluate and that receive events (hooks).
 *
 * Several processes run the same loop over their own batches (data_parallel.h). Process 0 reads and
 * writes checkpoints, and all processes end with the same status. Next: trainer.h, a step; feed.h;
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
  LACI_LOOP_BEGIN, /* the run begins. laci_loop_event.step is 0, or the step of the checkpoint from
                      which it continues */
  LACI_LOOP_STEP,
  LACI_LOOP_SCORE,
  LACI_LOOP_SAVED,
} laci_loop_kind;

typedef struct laci_loop_event {
  laci_loop_kind kind;
  int64_t step, epoch; /* number of steps taken, and of epochs completed, so far */
  int64_t steps;       /* number of steps of the whole run */
  double loss, rate;   /* for LACI_LOOP_STEP: mean loss before the update, and learning rate of the
                          update */
  double images_per_second, seconds_left;
  double top1;           /* for LACI_LOOP_STEP: percent of this process's images that the network
                            classified correctly before the update. For blended images the larger
                            part counts */
  laci_loop_score score; /* for LACI_LOOP_SCORE: result of the evaluation */
  bool is_best;
} laci_loop_event;

typedef struct laci_loop_hooks {
  /** Evaluates the network in the trainer's current state; if moving averages are kept, they are in
   * the weights' place. NULL: the network is never evaluated. With several processes, each calls
   * this, and all must get the same score. */
  lac_status (*evaluate)(void *context, laci_loop_score *score, lac_error *err);
  /** Receives every event; a failure ends the run. */
  lac_status (*on_event)(void *context, const laci_loop_event *event, lac_error *err);
  void *context;
} laci_loop_hooks;

typedef struct laci_loop_options {
  laci_feed_options feed;
  int accumulate; /* number of batches in a step, at least 1 */
  laci_schedule schedule;
  int64_t steps, steps_per_epoch; /* number of steps in the whole run, and in an epoch; at least
                                     1 */
  int64_t eval_every;             /* number of steps from one evaluation to the next; 0: only at the
                                     end */
  int64_t checkpoint_every;       /* number of steps from one checkpoint to the next, at least 1 */
  int64_t steps_per_loop;         /* evaluations and checkpoints are delayed until the number of
                                     steps is a multiple of this; at least 1 */
  double stop_threshold;          /* top-1 accuracy in percent at which the run ends; < 0: there is
                                     no such limit */
  bool keep_best;                 /* true: at the end the trainer holds the weights with the best
                                     evaluation */
  bool eval_first;                /* true: evaluates once before the very first step, as a
                                     reference. This score is never the best one, does not end the
                                     run, and is not repeated when a run continues */
  bool eval_only;                 /* true: takes no step, but evaluates the given weights; with
                                     `recover`, those of the checkpoint */
  const char *folder;             /* folder for checkpoints, which must exist; NULL: no checkpoints
                                     are written */
  int keep;                       /* number of checkpoints that are kept, at least 1 */
  bool recover;                   /* true: continues from the latest checkpoint, if there is one */
  const char *about;              /* the run's options as the members of a JSON object, without
                                     braces; stored in checkpoints for information */
  uint8_t *masks;                 /* [laci_optimizer_count_floats] bytes 0 or 1, as they are set in
                                     the optimizer; NULL: no weight is masked */
  const laci_data_parallel_options *share; /* how several processes share the work; NULL: a single
                                      process */
  bool trace;       /* true: records the last steps; laci_loop_result.trace has the text */
  int64_t paranoid; /* number of steps after which processes compare their states. They also do so
                       after the first step, and at checkpoints; 0: only then */
} laci_loop_options;

typedef struct laci_loop_result {
  int64_t step, first_step; /* step: number of steps taken in total. first_step: number of these
                               that an earlier run took */
  double loss;              /* loss of the last step; NaN: this run took no step */
  bool evaluated;
  laci_loop_score score; /* score of the last evaluation of this run */
  int64_t evaluated_step;
  double best_top1; /* best top-1 accuracy of all evaluations, in percent; < 0: there was none */
  double best_top5; /* top-5 accuracy in the evaluation with the best top-1; NaN: an earlier run
                       found that one and did not record its top-5 */
  int64_t best_step;
  bool reached;             /* true: stop_threshold was reached */
  double images_per_second; /* speed as a running mean, over all processes together */
  char *trace;              /* text of the trace, JSON (train/trace.h), which the caller frees;
                               NULL: it was not asked for, or this is not process 0 */
  double comm_seconds;      /* seconds during which sums over processes were in progress */
  double comm_waited;       /* seconds of these in which steps waited for the sums */
  double step_seconds;      /* duration of all steps of this run in seconds, without evaluations and
                               checkpoints */
} laci_loop_result;

/** Trains a network. After success the trainer has the final weights, or their moving averages if
 * these are kept. After a failure it has the weights of the last step.
 *
 * Fails with LAC_BAD_VALUE if the loss or weights are no longer finite, and names the step; earlier
 * checkpoints are kept. Fails with LAC_INTERRUPTED after saving a checkpoint, if there is a folder.
 * If a batch cannot be read or an evaluation fails, it saves a checkpoint and fails, too. Fails
 * with LAC_PEER if a process was lost; process 0 then saves the state after the last complete step.
 * Also fails as checkpoints, the plan, hooks and comparisons do. */
LAC_MUST_CHECK lac_status laci_loop_run(laci_trainer *trainer, const laci_dataset *set,
                                        const laci_loop_options *options,
                                        const laci_loop_hooks *hooks, laci_loop_result *result,
                                        lac_error *err);

/** Removes the checkpoints and the best weights from a folder, before a new run begins. Fails with
 * LAC_IO. */
LAC_MUST_CHECK lac_status laci_loop_remove_checkpoints(const char *folder, lac_error *err);
/** Does the folder contain checkpoints? */
bool laci_loop_has_checkpoints(const char *folder);

#endif
