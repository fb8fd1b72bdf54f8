/* SPDX-License-Identifier: Apache-2.0
 * What a training does in addition to its steps: passes events to the run's record and to the
 * caller's listener. Next: evaluate.c, record.c, train/loop.h. */
#include <string.h>

#include "api/model/model_in.h"
#include "api/train/plan_in.h"
#include "api/train/record_in.h"
#include "api/train/train_in.h"
#include "data/dataset.h"
#include "train/loop.h"
#include "train/trainer.h"

static void copy_event(const laci_loop_event *from, lac_train_event *to) {
  to->step = from->step;
  to->steps = from->steps;
  to->epoch = from->epoch;
  if (from->kind == LACI_LOOP_STEP) {
    to->kind = LAC_TRAIN_STEP;
    to->loss = from->loss;
    to->rate = from->rate;
    to->top1 = from->top1;
    to->images_per_second = from->images_per_second;
    to->seconds_left = from->seconds_left;
  } else if (from->kind == LACI_LOOP_SCORE) {
    to->kind = LAC_TRAIN_EVALUATED;
    to->loss = from->score.loss;
    to->top1 = from->score.top1;
    to->top5 = from->score.top5;
    to->is_best = from->is_best;
  } else {
    to->kind = from->kind == LACI_LOOP_BEGIN ? LAC_TRAIN_BEGIN : LAC_TRAIN_SAVED;
  }
}

lac_status laci_training_on_event(void *context, const laci_loop_event *from, lac_error *err) {
  laci_training *t = context;
  const lac_train_options *o = t->options;
  lac_train_event event = {0};
  lac_status st = LAC_OK;
  copy_event(from, &event);
  event.is_display = event.kind == LAC_TRAIN_STEP && event.step % o->display_steps == 0;
  if (event.kind == LAC_TRAIN_BEGIN)
    event.memory_bytes = laci_trainer_count_memory_bytes(t->trainer);
  if (event.kind == LAC_TRAIN_BEGIN && laci_training_writes_files(t)) {
    laci_train_about about = {.network = t->model->path,
                              .format = laci_dataset_format(t->plan->set),
                              .images = laci_dataset_count(t->plan->set),
                              .steps_per_epoch = t->plan->steps_per_epoch,
                              .dense_top1 = o->dense_top1};
    st = laci_train_record_open(o->model_dir, event.step, &about, &t->record, err);
  }
  if (!st && t->record) st = laci_train_record_add_event(t->record, &event, err);
  if (!st && o->listener) o->listener(&event, o->context);
  return st;
}
