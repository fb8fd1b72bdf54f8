/* SPDX-License-Identifier: Apache-2.0
 * Makes the trainer of a training, with masks and a memory budget, and logs notable facts about it.
 * Next: masks.c, train/trainer.h. */
#include <string.h>

#include "api/model/model_in.h"
#include "api/run/request.h"
#include "api/train/plan_in.h"
#include "api/train/train_in.h"
#include "base/budget.h"
#include "base/log.h"
#include "base/memory.h"
#include "engine/engine.h"
#include "graph/graph.h"
#include "graph/training_graph.h"
#include "graph/untrained.h"
#include "train/trainer.h"

static void log_plan(const laci_trainer *trainer, bool remat) {
  const laci_training_graph *g = laci_trainer_graph(trainer);
  const char *at = laci_trainer_plan_text(trainer);
  while (at && *at && laci_log_is_enabled(LAC_LOG_TRACE)) {
    size_t n = strcspn(at, "\n");
    laci_log(LAC_LOG_TRACE, "%.*s", (int)n, at);
    at += n + (at[n] == '\n');
  }
  laci_log(LAC_LOG_DEBUG, "memory of training as planned: %.1f MB",
           (double)laci_trainer_count_memory_bytes(trainer) / 1e6);
  if (remat) {
    int n = laci_engine_planned_memory(laci_trainer_engine(trainer)).n_recomputed;
    laci_log(LAC_LOG_DEBUG, "computed again for gradients: %d of %d nodes%s", n, g->graph->n_nodes,
             n > 0 ? "" : ", since none would save memory");
  }
}

static void warn_of_untrained_weights(const laci_untrained *left, const char *why) {
  if (left->n == 0) return;
  laci_log(LAC_LOG_WARNING, "%s%s: %s", left->first, left->n > 1 ? " and others" : "", why);
}

/** Logs which weights are not trained although one might expect it. */
static lac_status log_untrained_weights(const laci_training *t, lac_error *err) {
  const laci_graph *model = t->model->graph;
  const laci_training_graph *g = laci_trainer_graph(t->trainer);
  laci_untrained left;
  if (t->options->eval_only) return LAC_OK;
  for (int at = 1; at < model->n_outputs; at++) {
    lac_status st = laci_untrained_find_before_output(model, g, at, &left, err);
    if (st) return st;
    if (left.n == 0) continue;
    laci_log(
        LAC_LOG_WARNING,
        "output '%s' is not trained: only the first one is, and %d weight%s of this one stay%s "
        "as %s, the first is %s",
        model->values[model->outputs[at]].name, left.n, left.n == 1 ? "" : "s",
        left.n == 1 ? "s" : "", left.n == 1 ? "it is" : "they are", left.first);
  }
  left = laci_untrained_find_in_products(model, g);
  warn_of_untrained_weights(
      &left,
      "not trained: taken for constants, since they meet the images before any "
      "weight does, are in a Constant node, or are no f32");
  left = laci_untrained_find_without_gradient(g);
  warn_of_untrained_weights(&left, "no gradient reaches them, only the decay of weights does");
  return LAC_OK;
}

/** Adds to the budget the memory in addition to the trainer's: the model as read and as written
 * back, masks, and batches of images that are loaded ahead. */
static void add_memory_around_trainer(const laci_training *t, laci_budget *budget) {
  const laci_preprocessing *p = &t->plan->prepare;
  int64_t images = 2 * (int64_t)t->plan->batch; /* two batches are in memory, see train/feed.c */
  laci_model_add_stored_to_budget(t->model, budget);
  laci_model_add_stored_to_budget(t->model, budget);
  laci_budget_add(
      budget, laci_count_bytes_saturated(images, laci_preprocessing_sample_size(p) * sizeof(float)),
      "batches of %d images", t->plan->batch);
}

lac_status laci_training_make_trainer(laci_training *t, const lac_mask *mask, lac_error *err) {
  laci_engine_weight *weights = NULL;
  int n_weights = 0;
  lac_status st = laci_training_list_engine_masks(t, mask, &weights, &n_weights, err);
  laci_budget budget = laci_budget_with_limit(t->options->run.max_memory);
  laci_trainer_options o = {
      .graph = laci_training_graph_options(t),
      .optimizer = t->plan->recipe.optimizer,
      .run = laci_engine_options_of_run(&t->options->run, t->options->run.dtype),
      .remat = t->options->remat,
      .weights = weights,
      .n_weights = n_weights,
      .ema = t->options->ema,
      .clip_norm = t->plan->recipe.clip_norm,
      .shared = t->plan->processes > 1,
      .budget = &budget};
  add_memory_around_trainer(t, &budget);
  if (!st) st = laci_trainer_create(t->model->graph, &o, &t->trainer, err);
  laci_free(weights);
  if (!st) st = laci_training_check_classes_and_types(t, laci_trainer_graph(t->trainer), err);
  if (!st) st = laci_training_fill_masks(t, mask, err);
  if (!st) st = log_untrained_weights(t, err);
  if (!st) log_plan(t->trainer, t->options->remat);
  return st;
}
