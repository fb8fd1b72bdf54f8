/* SPDX-License-Identifier: Apache-2.0
 * Training recipes: complete sets of training options, as published references used them. They are
 * converted to an optimizer and a schedule when the batch and the length of an epoch are known.
 *
 * recipes.c has the table of recipes. A caller copies a recipe, applies the user's options, and
 * makes its schedule with laci_training_recipe_make_schedule. */
#ifndef LACI_TRAIN_RECIPE_H
#define LACI_TRAIN_RECIPE_H

#include <stddef.h>

#include "train/optimizer.h"
#include "train/schedule.h"

typedef struct laci_preprocessing_stage {
  double from_epoch, factor;
} laci_preprocessing_stage;

/** Learning rate and warm-up that replace those of a recipe for large batches. */
typedef struct laci_large_batch {
  int64_t above; /* these settings apply if a step has more images than this */
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
  double rate;      /* learning rate; if base_batch is set, that for base_batch images in a step */
  double rate_many; /* learning rate if several processes train; 0: it is `rate`, too */
  int base_batch;   /* images in a step (of all processes) for which `rate` is given: the rate used
                       is rate * images in a step / base_batch. 0: the rate does not scale */
  int batch;        /* number of images in a batch of one process; 0: it is LACI_BATCH_F32 or
                       LACI_BATCH_BF16 */
  laci_schedule_kind schedule;
  double end_rate, power; /* end_rate: final learning rate of the schedules cosine and polynomial.
                             power: exponent of polynomial */
  double warmup_epochs, epochs;
  double warmup_of_epochs; /* a run with fewer epochs than this has only a proportional part of the
                              warm-up; 0: every run has all of it */
  double smoothing, mixup; /* smoothing: smoothing of the labels, 0 to 1. mixup: parameter alpha of
                              MixUp; 0: no MixUp */
  double cutmix, erasing;  /* cutmix: parameter alpha of CutMix; 0: no CutMix. erasing: share of the
                              images in which a rectangle is erased */
  double clip_norm;        /* if the norm of a step's gradients is larger than this, they are scaled
                              down to it; 0: there is no limit */
  bool augment;            /* true: images are cropped and flipped at random */
  const char *policy;      /* name of the policy that chooses further changes of images
                              (laci_policy_name); NULL: none */
  int policy_changes, policy_magnitude; /* for the policy randaugment: number of changes of an
                                           image, and their strength; 0: not set */
  int n_stages;                         /* number of stages in the piecewise schedule */
  laci_preprocessing_stage stages[LACI_SCHEDULE_MAX_STAGES];
  const char *stages_of; /* name of the recipe that `stages` were taken from; NULL: they are this
                            recipe's own */
  int n_large;
  laci_large_batch large[LACI_RECIPE_LARGE]; /* [n_large] settings for large batches, which replace
                                                the recipe's; `above` ascends */
  const char *from[LACI_RECIPE_SETTINGS];    /* source of each setting; NULL: the recipe does not
                                                set it */
} laci_training_recipe;

/** Returns all recipes, and sets *n to their number. The first one is the default. */
const laci_training_recipe *laci_training_recipes(int *n);
/** Returns the recipe with this name; NULL: there is none. */
const laci_training_recipe *laci_training_recipe_find(const char *name);

/** laci_recipe_setting_name: returns the name of a setting. laci_recipe_format_setting: writes its
 * value in a recipe as text; empty if the recipe does not set it. */
const char *laci_recipe_setting_name(laci_recipe_setting setting);
void laci_recipe_format_setting(const laci_training_recipe *recipe, laci_recipe_setting setting,
                                char *text, size_t capacity);

/** The sizes of a training run, which a recipe does not have. */
typedef struct laci_run_size {
  int64_t global_batch;    /* number of images in a step: batch * accumulated batches * processes */
  int64_t steps_per_epoch; /* number of steps of an epoch, >= 1 */
  int64_t steps;           /* number of steps in the whole run; 0: as many as the recipe's epochs
                              have */
  int n_processes;
  double rate; /* learning rate that the user gave, which does not scale; < 0: the recipe's rate is
                  used */
} laci_run_size;

/** Computes the schedule of a run, in steps. A run that is shorter than the recipe's has a
 * proportional part of the warm-up, and a warm-up as long as the whole run is cut to half of it.
 * Fails with LAC_BAD_ARGUMENT if a value is out of its limits. */
LAC_MUST_CHECK lac_status laci_training_recipe_make_schedule(const laci_training_recipe *recipe,
                                                             const laci_run_size *size,
                                                             laci_schedule *schedule,
                                                             lac_error *err);

/** Writes what differs from the recipe because the run is shorter than its author intended: one
 * line for each change, or an empty text. schedule: the result of
 * laci_training_recipe_make_schedule. */
void laci_training_recipe_describe_changes(const laci_training_recipe *recipe,
                                           const laci_run_size *size, const laci_schedule *schedule,
                                           char *text, size_t capacity);

#endif
