/* SPDX-License-Identifier: Apache-2.0
 * Evaluation during a training: stores the weights in the model and runs lac_eval on it, so that
 * exactly the network that will be written is measured. Several processes divide the images. */
#include <string.h>

#include "api/model/model_in.h"
#include "api/run/eval_in.h"
#include "api/train/plan_in.h"
#include "api/train/train_in.h"
#include "base/memory.h"
#include "lacuna/eval.h"
#include "train/loop.h"
#include "train/trainer.h"

/** Evaluates this process's images, and then gathers the scores of all processes. */
static lac_status evaluate_in_all_processes(const laci_training *t, const lac_eval_options *how,
                                            lac_eval_result *result, lac_error *err) {
  const laci_eval_part part = {.part = t->plan->process,
                               .n_parts = t->plan->processes,
                               .quiet = t->evaluated,
                               .memory = laci_train_samples_of_part(t->plan, true)};
  laci_eval_scores scores = {0};
  lac_status st = laci_model_evaluate_part(t->model, t->plan->parts.test, how, &part, &scores, err);
  st = laci_training_agree_on_status(t, st, err);
  if (!st) st = laci_training_gather_scores(t, &scores, err);
  if (!st) laci_eval_result_from_scores(&scores, result);
  laci_free(scores.scores);
  return st;
}

lac_status laci_training_evaluate(void *context, laci_loop_score *score, lac_error *err) {
  laci_training *t = context;
  const lac_train_options *o = t->options;
  lac_eval_result result = LAC_SIZED(lac_eval_result);
  lac_eval_options how = lac_eval_options_default();
  how.run = o->run;
  how.batch = t->plan->batch;
  how.resize = o->resize;
  how.crop = o->crop;
  how.limit = o->eval_limit;
  how.classes = o->classes;
  memcpy(how.mean, o->mean, sizeof how.mean);
  memcpy(how.std, o->std, sizeof how.std);
  lac_status st = laci_trainer_store_in_model(t->trainer, t->model->graph, err);
  st = laci_training_agree_on_status(t, st, err);
  if (!st) st = evaluate_in_all_processes(t, &how, &result, err);
  t->evaluated = true;
  if (st) return st;
  *score = (laci_loop_score){.top1 = result.top1, .top5 = result.top5, .loss = result.loss};
  return LAC_OK;
}
