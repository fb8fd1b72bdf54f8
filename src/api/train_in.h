/* SPDX-License-Identifier: Apache-2.0
 * What the files of lac_train share: train_plan.c turns options and a folder into what is done,
 * train_record.c keeps what happened, train.c does it. */
#ifndef LACI_API_TRAIN_IN_H
#define LACI_API_TRAIN_IN_H

#include "data/parts.h"
#include "lacuna/eval.h"
#include "lacuna/train.h"
#include "train/loop.h"
#include "train/recipe.h"

/** Options with nothing left open. */
typedef struct laci_train_plan {
  laci_training_recipe recipe; /* with what the caller changed */
  int batch, accumulate;
  int64_t steps, steps_per_epoch, eval_every, checkpoint_every;
  laci_schedule schedule;
  laci_dataset *set; /* the training part; that for evaluation where nothing is trained */
  laci_preprocessing prepare;
  laci_parts parts;                      /* where the images lie */
  char about[3072];                      /* the inside of a JSON object */
  char changed[LAC_TRAIN_CHANGED_BYTES]; /* as the result's */
  bool quiet;                            /* no warnings about the data: training gives them */
} laci_train_plan;

/** The folder's training part, and how its images are prepared. Fails as lac_train. */
LAC_MUST_CHECK lac_status laci_train_open(const char *data, const lac_train_options *options,
                                          laci_train_plan *plan, lac_error *err);
/** All the rest; after laci_train_open. */
LAC_MUST_CHECK lac_status laci_train_resolve(const lac_train_options *options,
                                             laci_train_plan *plan, lac_error *err);
void laci_train_plan_clear(laci_train_plan *plan);

/** "cifar10", "cifar100", "folder", "digits". */
const char *laci_train_format(const laci_dataset *set);

/** Writes run.json, which says that the folder is a run's: the program, the network's name, seed,
 * steps, when it began. Fails LAC_IO, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_train_mark(const char *folder, const char *network, uint64_t seed,
                                          int64_t steps, lac_error *err);

/** log.jsonl, TensorBoard events and curves.svg of a run. */
typedef struct laci_train_record laci_train_record;

/** What the curves say they are of. */
typedef struct laci_train_about {
  const char *network; /* a path, or a name */
  const char *format;  /* of the data */
  int64_t images, steps_per_epoch;
  double dense_top1; /* 0: not known */
} laci_train_about;

/** In the folder, which is there; `about`: its texts stay with the caller; what an earlier run
 * wrote about later steps than `step` goes. */
LAC_MUST_CHECK lac_status laci_train_record_open(const char *folder, int64_t step,
                                                 const laci_train_about *about,
                                                 laci_train_record **record, lac_error *err);
LAC_MUST_CHECK lac_status laci_train_record_add(laci_train_record *record,
                                                const lac_train_event *event, lac_error *err);
/** Draws the curves once more and closes; NULL is fine. */
LAC_MUST_CHECK lac_status laci_train_record_close(laci_train_record *record, lac_error *err);

#endif
