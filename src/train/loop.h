/* SPDX-License-Identifier: Apache-2.0
 * The loop of a training: steps, evaluations, checkpoints, and how it ends.
 *
 *     evaluate where that is due; save where that is due; stop at the end; one step; again
 *
 * All that a step depends on is its number and what a checkpoint holds, so that a run that was cut
 * off anywhere and goes on from its newest checkpoint ends in the same bits. What an evaluation is
 * and who is called at each event is the caller's choice (hooks).
 *
 * Several processes run the same loop over batches of their own (share.h). Process 0 reads and
 * writes checkpoints, and all end with the same status. Next: trainer.h, a step; feed.h;
 * snapshot.h. */
#ifndef LACI_TRAIN_LOOP_H
#define LACI_TRAIN_LOOP_H

#include "train/feed.h"
#include "train/schedule.h"

typedef struct laci_share_options laci_share_options;
typedef struct laci_trainer laci_trainer;

typedef struct laci_loop_score {
  double top1, top5; /* percent */
  double loss;
} laci_loop_score;

typedef enum laci_loop_kind {
  LACI_LOOP_BEGIN, /* step: where the run starts, 0 or a checkpoint's */
  LACI_LOOP_STEP,
  LACI_LOOP_SCORE,
  LACI_LOOP_SAVED,
} laci_loop_kind;

typedef struct laci_loop_event {
  laci_loop_kind kind;
  int64_t step, epoch; /* taken so far */
  int64_t steps;       /* in all */
  double loss, rate;   /* STEP: mean loss before the update, and its rate */
  double images_per_second, seconds_left;
  laci_loop_score score; /* SCORE */
  bool is_best;
} laci_loop_event;

typedef struct laci_loop_hooks {
  /** The network as the trainer holds it now: averages, where it keeps some. NULL: it is never
   * evaluated. Of several processes each calls it, and all get the same. */
  lac_status (*evaluate)(void *context, laci_loop_score *score, lac_error *err);
  /** Called at every event; what it fails with ends the run. */
  lac_status (*on_event)(void *context, const laci_loop_event *event, lac_error *err);
  void *context;
} laci_loop_hooks;

typedef struct laci_loop_options {
  laci_feed_options feed;
  int accumulate; /* batches a step, >= 1 */
  laci_schedule schedule;
  int64_t steps, steps_per_epoch; /* >= 1 */
  int64_t eval_every;             /* steps; 0: only at the end */
  int64_t checkpoint_every;       /* steps, >= 1 */
  int64_t steps_per_loop;         /* evaluations and checkpoints wait for a multiple of it; >= 1 */
  double stop_threshold;          /* top-1 in percent that ends the run; < 0: none */
  bool keep_best;                 /* at the end the trainer holds the best evaluated weights */
  bool eval_first;                /* once before the first step of all, to compare with: no best
                                     one, no threshold, and not again when a run goes on */
  bool eval_only;                 /* no step: what is there (with recover, what was saved) */
  const char *folder;             /* of checkpoints, which is there; NULL: none are written */
  int keep;                       /* checkpoints, >= 1 */
  bool recover;                   /* go on from the newest one, where there is one */
  const char *about;              /* the run's options as the inside of a JSON object, for people */
  uint8_t *masks;                 /* [size of the optimizer's buffers] 0 or 1, as the optimizer
                                     has them; NULL: dense */
  const laci_share_options *share; /* the processes, where there are several; NULL: alone */
  bool trace;                      /* the last steps are recorded: the result has the text */
  int64_t paranoid;                /* steps after which they compare what they hold; 0: only at the
                                      first step and at checkpoints, as always */
} laci_loop_options;

typedef struct laci_loop_result {
  int64_t step, first_step; /* taken, with those before first_step by an earlier run */
  double loss;              /* of the last step; NaN: none was taken */
  bool evaluated;
  laci_loop_score score; /* of the last evaluation in this run */
  int64_t evaluated_step;
  double best_top1; /* < 0: none */
  double best_top5; /* NaN: an earlier run found the best one, and did not write that down */
  int64_t best_step;
  bool reached;             /* the threshold */
  double images_per_second; /* of all processes now, a running mean */
  char *trace;              /* JSON (train/trace.h), to be freed; NULL: not wanted, or not here */
  double comm_seconds;      /* in which gradients were summed over processes */
  double comm_waited;       /* of these, those that steps waited for them */
  double step_seconds;      /* of all steps of this run: without evaluations and checkpoints */
} laci_loop_result;

/** Trains. Fails LAC_BAD_VALUE where loss or weights are no finite numbers any more, naming the
 * step: what was saved before stays; LAC_INTERRUPTED after saving, where there is a folder; as
 * batches and evaluations fail, after saving, too, and LAC_PEER, where process 0 saves what all
 * held after the last whole step; as checkpoints, the plan, hooks and comparisons fail. The
 * trainer's weights are then those of the last step; those of a run that succeeds are their
 * averages, where it keeps some. */
LAC_MUST_CHECK lac_status laci_loop_run(laci_trainer *trainer, const laci_dataset *set,
                                        const laci_loop_options *options,
                                        const laci_loop_hooks *hooks, laci_loop_result *result,
                                        lac_error *err);

/** The folder's checkpoints are removed, best ones too: a new run begins there. Fails LAC_IO. */
LAC_MUST_CHECK lac_status laci_loop_clear(const char *folder, lac_error *err);
/** True where the folder holds any. */
bool laci_loop_has_checkpoints(const char *folder);

#endif
