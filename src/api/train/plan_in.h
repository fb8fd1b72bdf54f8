/* SPDX-License-Identifier: Apache-2.0
 * The plan of a training, derived from its options and a folder of images: plan.c makes it, train.c
 * carries it out. */
#ifndef LACI_API_TRAIN_PLAN_IN_H
#define LACI_API_TRAIN_PLAN_IN_H

#include "data/parts.h"
#include "data/prepare.h"
#include "lacuna/train.h"
#include "train/recipe.h"

typedef struct laci_dataset laci_dataset;
typedef struct laci_given_samples laci_given_samples;

/** The options of a training, in which all defaults are replaced by values. */
typedef struct laci_train_plan {
  laci_training_recipe recipe; /* recipe with the caller's changes */
  int batch, accumulate;       /* images per batch; batches per step in each process */
  int processes, process;      /* number of processes, and the rank of this one */
  int64_t steps, steps_per_epoch, eval_every, checkpoint_every;
  laci_schedule schedule;
  int64_t test_images; /* number of images in the part for evaluation, if that part is opened
                          together with the training part */
  const char *input;   /* name of the network's only input; NULL: not known */
  const char *known;   /* names of the network's classes, one in each line; NULL: not known */
  laci_dataset *set;   /* the training part; if nothing is trained, the part for evaluation */
  laci_preprocessing prepare;
  laci_parts parts;                      /* folders of the parts of the data */
  laci_given_samples *memory[2];         /* samples in memory, instead of folders: [0] to train on,
                                            [1] to evaluate on; NULL: none */
  char about[3072];                      /* description as the contents of a JSON object */
  char changed[LAC_TRAIN_CHANGED_BYTES]; /* see lac_train_result.changed */
  bool quiet;                            /* log no warnings about the data, since the training logs
                                            them */
} laci_train_plan;

/** Returns the samples in memory of one of the parts of the data; NULL: folders have them. */
const laci_given_samples *laci_train_samples_of_part(const laci_train_plan *plan, bool is_test);

/** Opens the training part of the folder or of the samples in memory, and determines how images are
 * prepared. Fails as lac_train. */
LAC_MUST_CHECK lac_status laci_train_open_data(const char *data, const lac_train_options *options,
                                               laci_train_plan *plan, lac_error *err);
/** Checks that a public function has either a folder or samples in memory. Fails
 * LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status laci_train_check_data_source(const char *function, const char *data,
                                                       const lac_train_options *options,
                                                       lac_error *err);
/** Fills the rest of the plan, after laci_train_open_data. */
LAC_MUST_CHECK lac_status laci_train_plan_fill(const lac_train_options *options,
                                               laci_train_plan *plan, lac_error *err);
/** Checks the limits of every option, and which options exclude each other. Fails LAC_BAD_ARGUMENT.
 */
LAC_MUST_CHECK lac_status laci_train_check_options(const lac_train_options *options,
                                                   lac_error *err);
/** Returns the recipe with the caller's changes, for options that were checked. Fails
 * LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status laci_train_make_recipe(const lac_train_options *options,
                                                 laci_training_recipe *recipe, lac_error *err);
void laci_train_plan_clear(laci_train_plan *plan);

#endif
