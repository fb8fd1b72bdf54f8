/* SPDX-License-Identifier: Apache-2.0
 * Recipes: complete sets of training options, as published references used them, and their
 * conversion to an optimizer and a schedule once the batch and the length of an epoch are known.
 *
 * The table is in recipes.c. A caller copies a recipe, applies the user's options, and resolves it
 * with laci_training_recipe_make_schedule. */
#ifndef LACI_TRAIN_RECIPE_H
#define LACI_TRAIN_RECIPE_H

#include <stddef.h>

#include "train/optimizer.h"
#include "train/schedule.h"

typedef struct laci_preprocessing_stage {
  double from_epoch, factor;
} laci_preprocessing_stage;

/** Rate and warm-up that replace those of the recipe for large batches. */
typedef struct laci_large_batch {
  int64_t above; /* used for more images in a step than this */
  double rate, warmup_epochs;
} laci_large_batch;

/** The settings of a recipe, in the order in which they are shown. */
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
  LACI_RECIPE_CUTMIX,
  LACI_RECIPE_ERASING,
  LACI_RECIPE_CLIP_NORM,
  LACI_RECIPE_AUGMENT,
  LACI_RECIPE_POLICY,
  LACI_RECIPE_SETTINGS
} laci_recipe_setting;

enum { LACI_RECIPE_LARGE = 3, LACI_BATCH_F32 = 128, LACI_BATCH_BF16 = 256 };

typedef struct laci_training_recipe {
  const char *name;
  laci_optimizer_options optimizer;
  double rate;      /* learning rate for base_batch images in a step */
  double rate_many; /* the rate where several processes train; 0: as rate */
  int base_batch;   /* 0: the rate does not scale with the global batch */
  int batch;        /* number of images in a batch of one process; 0: LACI_BATCH_F32 or
                       LACI_BATCH_BF16 */
  laci_schedule_kind schedule;
  double end_rate, power; /* final rate of the schedules cosine and polynomial, and exponent of
                             polynomial */
  double warmup_epochs, epochs;
  double warmup_of_epochs; /* number of epochs below which a run has only a proportional part of the
                              warm-up; 0: every run has all of it */
  double smoothing, mixup; /* smoothing of the labels, 0..1; and alpha of MixUp, 0: no MixUp */
  double cutmix, erasing;  /* alpha of CutMix, 0: no CutMix; and share of the images in which a
                              rectangle is erased */
  double clip_norm;        /* limit to which the norm of a step's gradients is scaled down; 0: no
                              limit */
  bool augment;            /* images are cropped and flipped at random */
  const char *policy;      /* name of the policy that draws further changes of images
                              (laci_policy_name); NULL: none */
  int policy_changes, policy_magnitude; /* number of changes of an image, and their strength, for
                                           the policy randaugment; 0: not set */
  int n_stages;                         /* stages of the piecewise schedule */
  laci_preprocessing_stage stages[LACI_SCHEDULE_MAX_STAGES];
  const char *stages_of; /* name of the recipe from which `stages` were taken; NULL: this one */
  int n_large;
  laci_large_batch large[LACI_RECIPE_LARGE]; /* [n_large] settings that replace the recipe's for
                                                large batches, with `above` ascending */
  const char *from[LACI_RECIPE_SETTINGS];    /* the source of each setting; NULL: not set */
} laci_training_recipe;

/** Returns all recipes; the first one is the default. */
const laci_training_recipe *laci_training_recipes(int *n);
/** Returns the recipe of that name; NULL: there is none. */
const laci_training_recipe *laci_training_recipe_find(const char *name);

/** Return the setting's name, and its value as text (empty: the recipe does not set it). */
const char *laci_recipe_setting_name(laci_recipe_setting setting);
void laci_recipe_format_setting(const laci_training_recipe *recipe, laci_recipe_setting setting,
                                char *text, size_t capacity);

/** The sizes of a run, which a recipe does not have. */
typedef struct laci_run_size {
  int64_t global_batch;    /* images a step: batch * accumulated batches * processes */
  int64_t steps_per_epoch; /* number of steps of an epoch, >= 1 */
  int64_t steps;           /* steps of the whole run; 0: those of the recipe's epochs */
  int n_processes;
  double rate; /* an explicit rate, used as given; < 0: the recipe's */
} laci_run_size;

/** Computes the schedule in steps. A run that is shorter than the recipe's has a proportional part
 * of the warm-up, and a warm-up as long as the whole run is cut to half of it. Fails
 * LAC_BAD_ARGUMENT for values out of their limits. */
LAC_MUST_CHECK lac_status laci_training_recipe_make_schedule(const laci_training_recipe *recipe,
                                                             const laci_run_size *size,
                                                             laci_schedule *schedule,
                                                             lac_error *err);

/** Writes what differs from the recipe because the run is shorter than its author intended: one
 * line for each change; empty: nothing. schedule: as laci_training_recipe_make_schedule computed
 * it. */
void laci_training_recipe_describe_changes(const laci_training_recipe *recipe,
                                           const laci_run_size *size, const laci_schedule *schedule,
                                           char *text, size_t capacity);

#endif
