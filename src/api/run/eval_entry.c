/* SPDX-License-Identifier: Apache-2.0
 * lac_eval: defaults and checks of its options, and the parts of the data. Next: eval.c. */
#include <string.h>

#include "api/model/given_samples.h"
#include "api/model/structs.h"
#include "api/run/eval_in.h"
#include "api/model/model_in.h"
#include "base/error.h"
#include "base/memory.h"
#include "data/parts.h"
#include "data/prepare.h"
#include "lacuna/eval.h"

void lac_eval_options_init(lac_eval_options *options, size_t size) {
  const laci_preprocessing images = laci_preprocessing_default();
  lac_eval_options usual = {.size = sizeof usual, .run = {.dtype = LAC_DTYPE_F32}, .batch = 64};
  memcpy(usual.mean, images.mean, sizeof usual.mean);
  memcpy(usual.std, images.std, sizeof usual.std);
  laci_struct_set_defaults(&usual, sizeof usual, options, size);
}

lac_status laci_eval_options_check(const lac_eval_options *options, lac_error *err) {
  lac_status st = laci_check_run_options(&options->run, err);
  if (st) return st;
  if (options->batch < 1 || options->batch > LACI_EVAL_MOST_BATCH) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "batches of %d images: wanted 1 to %d", options->batch,
                     LACI_EVAL_MOST_BATCH);
  }
  if (options->limit < 0) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "a limit of %lld images", (long long)options->limit);
  }
  return laci_scale_check_mean_and_std(options->mean, options->std, err);
}

lac_status lac_eval(const lac_model *model, const char *data, const lac_eval_options *options,
                    lac_eval_result *result, lac_error *err) {
  lac_eval_options own;
  lac_eval_result found = LAC_SIZED(lac_eval_result);
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"result", result});
  if (!st) st = laci_check_struct_eval_result(result, err);
  if (st) return st;
  laci_give_eval_result(&found, result);
  st = laci_take_eval_options(options, &own, err);
  if (!st) st = laci_check_data_source("lac_eval", data, own.from_memory, err);
  if (st) return st;
  laci_given_samples *memory = NULL;
  laci_parts *parts = laci_alloc(1, sizeof *parts);
  if (!parts) return laci_fail_memory(err, "the data");
  lac_context *before = laci_call_enter_context(own.run.context);
  if (own.from_memory) {
    st = laci_given_samples_open(own.from_memory, &memory, err);
    (void)strcpy(parts->test, laci_memory_name);
  } else {
    st = laci_parts_find(data, LACI_PARTS_TEST, parts, err);
  }
  if (!st) st = laci_evaluate_test_part(model, parts, memory, &own, &found, err);
  laci_give_eval_result(&found, result);
  laci_given_samples_close(memory);
  laci_call_leave_context(before);
  laci_free(parts);
  return st;
}
