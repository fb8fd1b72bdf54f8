/* SPDX-License-Identifier: Apache-2.0
 * Recipes: whole sets of training options, as the references used them, and how they become an
 * optimizer and a schedule once the batch and the length of an epoch are known.
 *
 * The table is in recipes.c. A caller copies a row, changes what its user changed, and resolves
 * it. */
#ifndef LACI_TRAIN_RECIPE_H
#define LACI_TRAIN_RECIPE_H

#include <stddef.h>

#include "train/optimizer.h"
#include "train/schedule.h"

typedef struct laci_preprocessing_stage {
  double from_epoch, factor;
} laci_preprocessing_stage;

/** What one step of many images gets in the place of the recipe's own rate and warm-up. */
typedef struct laci_large_batch {
  int64_t above; /* images a step */
  double rate, warmup_epochs;
} laci_large_batch;

/** What a recipe sets, in the order in which it is shown. */
typedef enum laci_recipe_setting {
  LACI_RECIPE_OPTIMIZER,
  LACI_RECIPE_MOMENTUM,
  LACI_RECIPE_WEIGHT_DECAY,
  LACI_RECIPE_TRUST,
  LACI_RECIPE_RATE,
  LACI_RECIPE_RATE_MANY,
  LACI_RECIPE_LARGE_BATCHES,
  LACI_RECIPE_SCHEDULE,
  LACI_RECIPE_WARMUP,
  LACI_RECIPE_EPOCHS,
  LACI_RECIPE_BATCH,
  LACI_RECIPE_SMOOTHING,
  LACI_RECIPE_MIXUP,
  LACI_RECIPE_AUGMENT,
  LACI_RECIPE_SETTINGS
} laci_recipe_setting;

enum { LACI_RECIPE_LARGE = 3, LACI_BATCH_F32 = 128, LACI_BATCH_BF16 = 256 };

typedef struct laci_training_recipe {
  const char *name;
  laci_optimizer_options optimizer;
  double rate;      /* of base_batch images a step */
  double rate_many; /* the same where several processes train; 0: as rate */
  int base_batch;   /* 0: the rate does not scale with the global batch */
  int batch;        /* images a process; 0: LACI_BATCH_F32, or _BF16 */
  laci_schedule_kind schedule;
  double end_rate, power; /* of cosine and polynomial */
  double warmup_epochs, epochs;
  double warmup_of_epochs; /* a run that is shorter than so many has its share of the warm-up; 0:
                              any run has all of it */
  double smoothing, mixup; /* of labels, 0..1; alpha of MixUp, 0: none */
  bool augment;            /* crop and flip */
  int n_stages;            /* of piecewise */
  laci_preprocessing_stage stages[LACI_SCHEDULE_MAX_STAGES];
  const char *stages_of; /* the recipe that they were taken from; NULL: this one */
  int n_large;
  laci_large_batch large[LACI_RECIPE_LARGE]; /* `above` ascending */
  const char *from[LACI_RECIPE_SETTINGS];    /* where each figure comes from; NULL: not set */
} laci_training_recipe;

/** All recipes; the first is what counts where none is asked for. */
const laci_training_recipe *laci_training_recipes(int *n);
/** NULL: there is none of that name. */
const laci_training_recipe *laci_training_recipe_find(const char *name);

/** The setting's name, and its value in words (empty: the recipe has none). */
const char *laci_recipe_setting_name(laci_recipe_setting setting);
void laci_recipe_setting_text(const laci_training_recipe *recipe, laci_recipe_setting setting,
                              char *text, size_t capacity);

/** What a run knows besides its recipe. */
typedef struct laci_run_size {
  int64_t global_batch;    /* images a step: batch * accumulated batches * processes */
  int64_t steps_per_epoch; /* >= 1 */
  int64_t steps;           /* in all; 0: as many as the recipe's epochs have */
  int n_processes;
  double rate; /* an explicit rate, used as given; < 0: the recipe's */
} laci_run_size;

/** The schedule in steps. A run that is shorter than the recipe's has its share of the warm-up, and
 * one that would take the whole run is cut to half of it. Fails
 * LAC_BAD_ARGUMENT for values out of their limits. */
LAC_MUST_CHECK lac_status laci_training_recipe_schedule(const laci_training_recipe *recipe,
                                                        const laci_run_size *size,
                                                        laci_schedule *schedule, lac_error *err);

/** What such a run makes of the recipe that its author might not expect, since it is shorter: a
 * line each, in text; empty: nothing. schedule: as laci_training_recipe_schedule made it. */
void laci_training_recipe_changes(const laci_training_recipe *recipe, const laci_run_size *size,
                                  const laci_schedule *schedule, char *text, size_t capacity);

#endif
