/* SPDX-License-Identifier: Apache-2.0
 * Runs the loop of src/train according to options and plan, and fills the result. Next: hooks.c,
 * train/loop.h. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/train/plan_in.h"
#include "api/train/train_in.h"
#include "base/log.h"
#include "data/augment.h"
#include "data/dataset.h"
#include "graph/training_graph.h"
#include "train/loop.h"
#include "train/data_parallel.h"
#include "train/trainer.h"

/** Logs how the run changes its recipe, one line per change. */
static void log_recipe_changes(const laci_training *t) {
  if (t->options->eval_only) return;
  for (const char *at = t->plan->changed; *at;) {
    size_t n = strcspn(at, "\n");
    laci_log(LAC_LOG_INFO, "%.*s", (int)n, at);
    at += n + (at[n] == '\n');
  }
}

/** Returns steps_per_loop, at most an epoch, so that no evaluation waits longer. */
static int64_t steps_per_loop(const laci_training *t) {
  int64_t wanted = t->options->steps_per_loop, most = t->plan->steps_per_epoch;
  if (wanted <= most) return wanted;
  laci_log(LAC_LOG_INFO, "%" PRId64 " steps a loop: %" PRId64 ", those of an epoch", wanted, most);
  return most;
}

static void log_gradient_sums(const lac_train_result *r, int processes) {
  laci_log(LAC_LOG_DEBUG,
           "sums of gradients over %d processes: in progress for %.3g s, %.1f %% of it during "
           "the backward part",
           processes, r->comm_seconds, 100 * r->comm_hidden);
}

lac_status laci_training_run(laci_training *t, lac_train_result *result, lac_error *err) {
  const lac_train_options *o = t->options;
  const laci_train_plan *p = t->plan;
  const laci_data_parallel_options share = laci_training_parallel_options(t);
  laci_augment augment = laci_dataset_augment(p->set);
  augment.policy =
      (laci_policy){.n_changes = p->recipe.policy_changes, .magnitude = p->recipe.policy_magnitude};
  if (p->recipe.policy) (void)laci_policy_find(p->recipe.policy, &augment.policy.kind);
  laci_loop_options loop = {.feed = {.preprocessing = p->prepare,
                                     .batch = p->batch,
                                     .n_classes = laci_trainer_graph(t->trainer)->n_classes,
                                     .seed = o->seed,
                                     .shuffle = o->shuffle,
                                     .augmented = p->recipe.augment,
                                     .augment = augment,
                                     .smoothing = p->recipe.smoothing,
                                     .mixup = p->recipe.mixup,
                                     .cutmix = p->recipe.cutmix,
                                     .erasing = p->recipe.erasing},
                            .accumulate = p->accumulate,
                            .schedule = p->schedule,
                            .steps = p->steps,
                            .steps_per_epoch = p->steps_per_epoch,
                            .eval_every = p->eval_every,
                            .checkpoint_every = p->checkpoint_every,
                            .steps_per_loop = steps_per_loop(t),
                            .stop_threshold = o->stop_threshold,
                            .keep_best = o->keep_best,
                            .eval_first = o->eval_first,
                            .eval_only = o->eval_only,
                            .folder = o->model_dir,
                            .keep = o->keep_checkpoints,
                            .recover = o->recover,
                            .about = p->about,
                            .masks = t->masks,
                            .share = &share,
                            .trace = o->trace,
                            .paranoid = o->paranoid_steps};
  laci_loop_hooks hooks = {.evaluate = o->evaluate || o->eval_only ? laci_training_evaluate : NULL,
                           .on_event = laci_training_on_event,
                           .context = t};
  laci_loop_result r;
  log_recipe_changes(t);
  lac_status st = laci_loop_run(t->trainer, p->set, &loop, &hooks, &r, err);
  const int64_t n_steps = r.step - r.first_step,
                a_step = (int64_t)p->batch * p->accumulate * p->processes;
  *result = (lac_train_result){
      .size = sizeof *result,
      .recipe = p->recipe.name,
      .dtype = o->run.dtype,
      .threads = laci_trainer_threads(t->trainer),
      .batch = p->batch,
      .accumulate = p->accumulate,
      .processes = p->processes,
      .images = laci_dataset_count(p->set),
      .planned_steps = o->eval_only ? r.step : p->steps,
      .first_step = r.first_step,
      .steps = r.step,
      .epochs = (double)r.step / (double)p->steps_per_epoch,
      .loss = r.loss,
      .evaluated = r.evaluated,
      .top1 = r.score.top1,
      .top5 = r.score.top5,
      .eval_loss = r.score.loss,
      .eval_step = r.evaluated_step,
      .best_top1 = r.best_top1,
      .best_top5 = r.best_top5,
      .best_step = r.best_step,
      .reached = r.reached,
      .interrupted = st == LAC_INTERRUPTED,
      .images_per_second = r.images_per_second,
      .trace = r.trace,
      .comm_seconds = r.comm_seconds,
      .comm_hidden = r.comm_seconds > 0 ? 1 - fmin(1, r.comm_waited / r.comm_seconds) : NAN,
      .average_images_per_second = n_steps ? (double)(n_steps * a_step) / r.step_seconds : NAN,
      .memory_bytes = laci_trainer_count_memory_bytes(t->trainer)};
  if (p->processes > 1 && n_steps > 0) log_gradient_sums(result, p->processes);
  memcpy(result->changed, p->changed, sizeof result->changed);
  return st;
}
