/* SPDX-License-Identifier: Apache-2.0
 * An evaluation on the way stores the weights in the model and lets lac_eval run it, as anybody
 * would: the network that is measured is the one that is written. */
#include <string.h>

#include "api/eval_in.h"
#include "api/model_in.h"
#include "api/train_in.h"
#include "api/train_plan_in.h"
#include "lacuna/eval.h"
#include "train/loop.h"
#include "train/trainer.h"

lac_status laci_training_evaluate(void *context, laci_loop_score *score, lac_error *err) {
  laci_training *t = context;
  const lac_train_options *o = t->options;
  lac_eval_result result;
  lac_eval_options how = lac_eval_options_default();
  how.threads = o->threads;
  how.dtype = o->dtype;
  how.engine = o->engine;
  how.batch = t->plan->batch;
  how.max_memory = o->max_memory;
  how.resize = o->resize;
  how.crop = o->crop;
  how.limit = o->eval_limit;
  how.classes = o->classes;
  memcpy(how.mean, o->mean, sizeof how.mean);
  memcpy(how.std, o->std, sizeof how.std);
  lac_status st = laci_trainer_store(t->trainer, t->model->graph, err);
  if (!st)
    st = laci_model_evaluate(t->model, t->plan->parts.test, &how, t->evaluated, &result, err);
  t->evaluated = true;
  if (st) return st;
  *score = (laci_loop_score){.top1 = result.top1, .top5 = result.top5, .loss = result.loss};
  return LAC_OK;
}
