/* SPDX-License-Identifier: Apache-2.0
 * lac_train and lac_train_check: do the steps of a training in order. Next: train_in.h, plan.c. */
#include "lacuna/train.h"

#include "api/model/model_in.h"
#include "api/model/structs.h"
#include "api/run/infer.h"
#include "api/train/plan_in.h"
#include "api/train/record_in.h"
#include "api/train/train_in.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/folder.h"
#include "base/memory.h"
#include "runs/run_folder.h"
#include "train/trainer.h"

static void training_clear(laci_training *t) {
  laci_trainer_destroy(t->trainer);
  laci_train_plan_clear(t->plan);
  laci_free(t->masks);
  laci_folder_unlock(t->lock);
}

lac_status lac_train(lac_model *model, const char *data, const lac_mask *mask,
                     const lac_train_options *options, lac_train_result *result, lac_error *err) {
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"options", options}, {"result", result});
  lac_train_options own;
  if (!st) st = laci_check_struct_train_result(result, err);
  if (!st) st = laci_take_train_options(options, &own, err);
  if (!st) st = laci_train_check_data_source(__func__, data, &own, err);
  if (st) return st;
  laci_train_plan plan = {0};
  lac_context *before = laci_call_enter_context(own.run.context);
  own.run.dtype = laci_dtype_find_supported_or_warn(own.run.engine, own.run.dtype);
  laci_training t = {.model = model, .options = &own, .plan = &plan, .lock = -1};
  const double begin = laci_clock_seconds();
  lac_train_result done = {.size = sizeof done, .best_top1 = -1, .dtype = own.run.dtype};
  st = laci_training_check_and_plan(&t, data, err);
  if (!st) st = laci_training_store_class_names(&t, err);
  st = laci_training_agree_without_timeout(&t, st, err);
  if (!st) st = laci_training_broadcast_weights(&t, mask, err);
  if (!st)
    st = laci_training_agree_without_timeout(&t, laci_training_make_trainer(&t, mask, err), err);
  if (!st) st = laci_training_agree_without_timeout(&t, laci_training_open_folder(&t, err), err);
  if (!st) st = laci_training_run(&t, &done, err);
  const bool ran = !st;
  if (!st) st = laci_trainer_store_in_model(t.trainer, model->graph, err);
  lac_status closed = laci_train_record_close(t.record, st ? NULL : err);
  if (ran) st = laci_training_agree_without_timeout(&t, st ? st : closed, err);
  done.seconds = laci_clock_seconds() - begin;
  laci_give_train_result(&done, result);
  training_clear(&t);
  laci_call_leave_context(before);
  return st;
}

lac_status lac_train_check(lac_model *model, const char *data, const lac_train_options *options,
                           lac_error *err) {
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"options", options});
  lac_train_options own;
  if (!st) st = laci_take_train_options(options, &own, err);
  if (!st) st = laci_train_check_data_source(__func__, data, &own, err);
  if (st) return st;
  laci_train_plan plan = {.quiet = true};
  lac_context *before = laci_call_enter_context(own.run.context);
  own.run.dtype = laci_dtype_find_supported(own.run.engine, own.run.dtype);
  laci_training t = {.model = model, .options = &own, .plan = &plan, .lock = -1};
  st = laci_training_check_and_plan(&t, data, err);
  if (!st && !own.eval_only) st = laci_training_check_graph(&t, err);
  if (!st && laci_training_writes_files(&t)) {
    /* The lock fails if another run uses the folder. */
    st = laci_folder_lock(own.model_dir, &t.lock, err);
    if (!st) st = laci_run_folder_check_usable(own.model_dir, err);
  }
  st = laci_training_agree_without_timeout(&t, st, err);
  training_clear(&t);
  laci_call_leave_context(before);
  return st;
}
