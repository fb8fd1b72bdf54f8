/* SPDX-License-Identifier: Apache-2.0
 * Computes the size of a training: steps, warm-up and rate, which depend only on its options and
 * the number of images (plan.c). */
#include "api/model/structs.h"
#include "api/run/infer.h"
#include "api/train/plan_in.h"
#include "base/error.h"
#include "data/dataset.h"
#include "lacuna/train.h"

lac_status lac_train_size_find(const char *data, const lac_train_options *options,
                               lac_train_size *found, lac_error *err) {
  lac_status st = LACI_CHECK_GIVEN(err, {"options", options}, {"found", found});
  lac_train_options own;
  if (!st) st = laci_check_struct_train_size(found, err);
  if (!st) st = laci_take_train_options(options, &own, err);
  if (!st) st = laci_train_check_data_source(__func__, data, &own, err);
  if (st) return st;
  laci_train_plan plan = {.quiet = true};
  lac_context *before = laci_call_enter_context(own.run.context);
  own.run.dtype = laci_dtype_find_supported(own.run.engine, own.run.dtype);
  st = laci_train_open_data(data, &own, &plan, err);
  if (!st) st = laci_train_plan_fill(&own, &plan, err);
  if (!st) {
    const lac_train_size size = {
        .size = sizeof size,
        .images = laci_dataset_count(plan.set),
        .classes = laci_dataset_count_classes(plan.set),
        .step_images = (int64_t)plan.batch * plan.accumulate * plan.processes,
        .steps_per_epoch = plan.steps_per_epoch,
        .steps = plan.steps,
        .warmup_steps = plan.schedule.warmup_steps,
        .rate = plan.schedule.rate,
    };
    laci_give_train_size(&size, found);
  }
  laci_train_plan_clear(&plan);
  laci_call_leave_context(before);
  return st;
}
