/* SPDX-License-Identifier: Apache-2.0
 * What a training does, from its options and a folder of images: made by plan.c, done by
 * train.c. */
#ifndef LACI_API_TRAIN_PLAN_IN_H
#define LACI_API_TRAIN_PLAN_IN_H

#include "data/parts.h"
#include "data/prepare.h"
#include "lacuna/train.h"
#include "train/recipe.h"

typedef struct laci_dataset laci_dataset;

/** Options with nothing left open. */
typedef struct laci_train_plan {
  laci_training_recipe recipe; /* with what the caller changed */
  int batch, accumulate;       /* images a batch, batches a step and process */
  int processes, process;      /* how many, and which of them this one is */
  int64_t steps, steps_per_epoch, eval_every, checkpoint_every;
  laci_schedule schedule;
  int64_t test_images; /* of the part for evaluation, where it is looked at with the other */
  const char *known;   /* the network's classes, as laci_graph has them; NULL: not known */
  laci_dataset *set;   /* the training part; that for evaluation where nothing is trained */
  laci_preprocessing prepare;
  laci_parts parts;                      /* where the images are */
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
/** Every option by itself, and those that rule each other out. Fails LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status laci_train_check_options(const lac_train_options *options,
                                                   lac_error *err);
/** The recipe with what the caller changed in it, of options that were checked. Fails
 * LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status laci_train_recipe(const lac_train_options *options,
                                            laci_training_recipe *recipe, lac_error *err);
void laci_train_plan_clear(laci_train_plan *plan);

#endif
