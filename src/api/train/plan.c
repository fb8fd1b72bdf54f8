/* SPDX-License-Identifier: Apache-2.0
 * Makes a plan from options: a copy of the recipe with the caller's changes, converted to steps
 * when the number of images is known. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/model/given_samples.h"
#include "api/model/structs.h"
#include "api/run/eval_in.h"
#include "api/train/plan_in.h"
#include "base/error.h"
#include "base/log.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "lacuna/process_group.h"

void lac_train_options_init(lac_train_options *options, size_t size) {
  const laci_preprocessing images = laci_preprocessing_default();
  lac_train_options usual = {.size = sizeof usual,
                             .run = {.dtype = LAC_DTYPE_F32},
                             .accumulate = 1,
                             .epochs = -1,
                             .decay = -1,
                             .rate = -1,
                             .momentum = -1,
                             .weight_decay = -1,
                             .nesterov = -1,
                             .warmup_epochs = -1,
                             .label_smoothing = -1,
                             .mixup = -1,
                             .cutmix = -1,
                             .erasing = -1,
                             .clip_norm = -1,
                             .policy_magnitude = -1,
                             .augment = true,
                             .shuffle = true,
                             .evaluate = true,
                             .epochs_between_evals = 1,
                             .steps_per_loop = 1,
                             .stop_threshold = -1,
                             .keep_checkpoints = 3,
                             .display_steps = 100,
                             .wire = LAC_DTYPE_F32};
  memcpy(usual.mean, images.mean, sizeof usual.mean);
  memcpy(usual.std, images.std, sizeof usual.std);
  laci_struct_set_defaults(&usual, sizeof usual, options, size);
}

/* ---- The data ---- */

lac_status laci_train_check_data_source(const char *function, const char *data,
                                        const lac_train_options *options, lac_error *err) {
  if (!options->from_memory && options->test_from_memory) {
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "%s: options.test_from_memory, but no options.from_memory", function);
  }
  return laci_check_data_source(function, data, options->from_memory, err);
}

/** Returns which parts of the data this run reads. */
static laci_parts_use find_parts_to_read(const lac_train_options *o) {
  if (o->eval_only) return LACI_PARTS_TEST;
  return o->evaluate ? LACI_PARTS_BOTH : LACI_PARTS_TRAIN;
}

static lac_status resolve_image_options(const char *data, const lac_train_options *o,
                                        laci_train_plan *plan, lac_error *err) {
  laci_preprocessing *p = &plan->prepare;
  *p = laci_dataset_preprocessing(plan->set);
  const laci_image_choice choice = {o->resize, o->crop, o->mean, o->std};
  return laci_choose_preprocessing(p, data, &choice, err);
}

const laci_given_samples *laci_train_samples_of_part(const laci_train_plan *plan, bool is_test) {
  return is_test && plan->memory[1] ? plan->memory[1] : plan->memory[0];
}

/** Finds the parts: of a folder, or in memory. */
static lac_status find_parts(const char *data, const lac_train_options *o, laci_train_plan *plan,
                             lac_error *err) {
  if (!o->from_memory) return laci_parts_find(data, find_parts_to_read(o), &plan->parts, err);
  lac_status st = laci_given_samples_open(o->from_memory, &plan->memory[0], err);
  if (!st && o->test_from_memory) {
    st = laci_given_samples_open(o->test_from_memory, &plan->memory[1], err);
  }
  (void)strcpy(plan->parts.train, laci_memory_name);
  (void)strcpy(plan->parts.test, laci_memory_name);
  return st;
}

/** Warns where evaluations would see the images that are trained on. */
static void warn_of_shared_images(const char *data, const lac_train_options *o,
                                  const laci_train_plan *plan) {
  const bool arrays = strcmp(laci_dataset_format(plan->set), "arrays") == 0;
  const bool one_folder = strcmp(plan->parts.train, plan->parts.test) == 0;
  if (!o->evaluate || o->eval_only || plan->quiet || !one_folder || plan->memory[1]) return;
  if (!arrays && strcmp(laci_dataset_format(plan->set), "folder") != 0) return;
  laci_log(LAC_LOG_WARNING, "%s: no %s: evaluated are the %s that are trained on", data,
           o->from_memory ? "test_from_memory" : "folders train and val in it",
           arrays ? "samples" : "images");
}

lac_status laci_train_open_data(const char *data, const lac_train_options *o, laci_train_plan *plan,
                                lac_error *err) {
  lac_status st = find_parts(data, o, plan, err);
  if (st) return st;
  if (!data) data = laci_memory_name;
  const char *train = plan->parts.train, *test = plan->parts.test;
  laci_dataset_options how = {.part = o->eval_only ? LACI_PART_TEST : LACI_PART_TRAIN,
                              .classes_path = o->classes,
                              .known = plan->known,
                              .input = plan->input,
                              .may_be_new = !o->eval_only,
                              .quiet = plan->quiet};
  laci_dataset_options_set_memory(laci_train_samples_of_part(plan, o->eval_only), &how);
  st = laci_dataset_open(o->eval_only ? test : train, &how, &plan->set, err);
  if (st) return st;
  const char *format = laci_dataset_format(plan->set);
  if (o->format && strcmp(o->format, format) != 0) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: it holds %s, but the format wanted is %s", data,
                     format, o->format);
  }
  warn_of_shared_images(data, o, plan);
  return resolve_image_options(data, o, plan, err);
}

lac_status lac_train_data_find(const char *data, const lac_train_options *options,
                               lac_train_data *found, lac_error *err) {
  lac_status st = LACI_CHECK_GIVEN(err, {"options", options}, {"found", found});
  lac_train_options own;
  if (!st) st = laci_check_struct_train_data(found, err);
  if (!st) st = laci_take_train_options(options, &own, err);
  if (!st) st = laci_train_check_data_source(__func__, data, &own, err);
  if (st) return st;
  laci_train_plan plan = {.quiet = true};
  lac_context *before = laci_call_enter_context(own.run.context);
  st = laci_train_open_data(data, &own, &plan, err);
  if (!st) {
    const laci_shape sample = laci_preprocessing_sample_shape(&plan.prepare);
    lac_train_data about = {.size = sizeof about,
                            .format = laci_dataset_format(plan.set),
                            .images = laci_dataset_count(plan.set),
                            .classes = laci_dataset_count_classes(plan.set)};
    if (sample.rank == 3) {
      about.channels = (int)sample.dims[0];
      about.height = (int)sample.dims[1];
      about.width = (int)sample.dims[2];
    }
    laci_give_train_data(&about, found);
  }
  laci_train_plan_clear(&plan);
  laci_call_leave_context(before);
  return st;
}

void laci_train_plan_clear(laci_train_plan *plan) {
  laci_dataset_close(plan->set);
  plan->set = NULL;
  for (int k = 0; k < 2; k++) laci_given_samples_close(plan->memory[k]);
}

/* ---- Converting epochs to steps ---- */

static void write_options_text(const lac_train_options *o, laci_train_plan *plan) {
  const laci_training_recipe *r = &plan->recipe;
  (void)snprintf(
      plan->about, sizeof plan->about,
      "\"recipe\": \"%s\", \"optimizer\": \"%s\", \"momentum\": %.9g, \"nesterov\": %s, "
      "\"weight_decay\": %.9g, \"decay_all\": %s, \"schedule\": \"%s\", \"rate\": %.17g, "
      "\"warmup_steps\": %" PRId64 ", \"steps\": %" PRId64
      ", \"batch\": %d, \"accumulate\": %d, \"processes\": %d, "
      "\"label_smoothing\": %.17g, \"mixup\": %.17g, \"cutmix\": %.17g, \"erasing\": %.17g, "
      "\"clip_norm\": %.17g, \"ema\": %.17g, \"augment\": %s, \"policy\": \"%s\", "
      "\"policy_magnitude\": %d, \"shuffle\": "
      "%s, "
      "\"dtype\": \"%s\", \"eval_limit\": %" PRId64 ", \"images\": %" PRId64 ", \"seed\": %" PRIu64,
      r->name, laci_optimizer_kind_name(r->optimizer.kind), (double)r->optimizer.momentum,
      r->optimizer.nesterov ? "true" : "false", (double)r->optimizer.decay,
      r->optimizer.decay_all ? "true" : "false", laci_schedule_kind_name(plan->schedule.kind),
      plan->schedule.rate, plan->schedule.warmup_steps, plan->steps, plan->batch, plan->accumulate,
      plan->processes, r->smoothing, r->mixup, r->cutmix, r->erasing, r->clip_norm, o->ema,
      r->augment ? "true" : "false", r->policy ? r->policy : "none", r->policy_magnitude,
      o->shuffle ? "true" : "false", lac_dtype_name(o->run.dtype), o->eval_limit,
      laci_dataset_count(plan->set), o->seed);
}

lac_status laci_train_plan_fill(const lac_train_options *o, laci_train_plan *plan, lac_error *err) {
  lac_status st = laci_train_check_options(o, err);
  if (!st) st = laci_train_make_recipe(o, &plan->recipe, err);
  if (st) return st;
  int64_t images = laci_dataset_count(plan->set);
  plan->batch = o->batch                         ? o->batch
                : plan->recipe.batch             ? plan->recipe.batch
                : o->run.dtype == LAC_DTYPE_BF16 ? LACI_BATCH_BF16
                                                 : LACI_BATCH_F32;
  plan->accumulate = o->accumulate;
  if (o->eval_only) { /* the open part is the one for evaluation, and there are no steps */
    plan->accumulate = 1;
    if (images < plan->batch) plan->batch = (int)images;
  }
  plan->processes = lac_process_group_size(o->group);
  plan->process = lac_process_group_rank(o->group);
  int64_t batches = laci_training_steps_per_epoch(plan->set, plan->batch);
  if (batches < 1) {
    return laci_hint(
        err, LAC_HINT_BATCH,
        laci_fail(err, LAC_BAD_ARGUMENT,
                  "%" PRId64 " images for training are less than a batch of %d, and a step takes "
                  "whole batches: wanted a batch of %" PRId64 " or less",
                  images, plan->batch, images));
  }
  const int64_t a_step = (int64_t)plan->accumulate * (o->eval_only ? 1 : plan->processes);
  if (batches < a_step) {
    return laci_hint(
        err, LAC_HINT_ACCUMULATE,
        laci_fail(err, LAC_BAD_ARGUMENT,
                  "%" PRId64 " images for training are less than a step of %" PRId64
                  " batches of %d: wanted a step of %" PRId64 " batch%s or less, or smaller ones",
                  images, a_step, plan->batch, batches, batches == 1 ? "" : "es"));
  }
  plan->steps_per_epoch = batches / a_step;
  laci_run_size size = {.global_batch = a_step * plan->batch,
                        .steps_per_epoch = plan->steps_per_epoch,
                        .steps = o->steps,
                        .n_processes = plan->processes,
                        .rate = o->rate};
  st = laci_training_recipe_make_schedule(&plan->recipe, &size, &plan->schedule, err);
  if (st) return st;
  plan->steps = plan->schedule.steps;
  laci_training_recipe_describe_changes(&plan->recipe, &size, &plan->schedule, plan->changed,
                                        sizeof plan->changed);
  plan->eval_every =
      o->eval_steps ? o->eval_steps : o->epochs_between_evals * plan->steps_per_epoch;
  plan->checkpoint_every = o->checkpoint_steps ? o->checkpoint_steps : plan->steps_per_epoch;
  write_options_text(o, plan);
  return LAC_OK;
}
