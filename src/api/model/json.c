/* SPDX-License-Identifier: Apache-2.0
 * The public functions that return reports as JSON, made by report/json.h. */
#include "api/model/model_in.h"
#include "api/model/structs.h"
#include "base/error.h"
#include "lacuna/bench.h"
#include "lacuna/eval.h"
#include "lacuna/pack.h"
#include "lacuna/report.h"
#include "lacuna/train.h"
#include "report/json.h"

lac_status lac_report_json(const lac_report *report, char **text, lac_error *err) {
  if (text) *text = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"report", report}, {"text", text});
  return st ? st : laci_report_json(report, text, err);
}

lac_status lac_bench_json(const lac_bench_result *result, char **text, lac_error *err) {
  if (text) *text = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"result", result}, {"text", text});
  return st ? st : laci_bench_json(result, text, err);
}

lac_status lac_eval_json(const lac_model *model, const lac_eval_result *result, char **text,
                         lac_error *err) {
  if (text) *text = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"result", result}, {"text", text});
  lac_eval_result own;
  if (!st) st = laci_take_eval_result(result, &own, err);
  return st ? st : laci_eval_json(model->path, &own, text, err);
}

lac_status lac_pack_report_json(const lac_pack_report *report, char **text, lac_error *err) {
  if (text) *text = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"report", report}, {"text", text});
  return st ? st : laci_pack_json(report, text, err);
}

lac_status lac_train_json(const lac_train_about *about, const lac_train_result *result, char **text,
                          lac_error *err) {
  if (text) *text = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"about", about}, {"result", result}, {"text", text},
                                   {"options", about ? about->options : NULL});
  lac_train_about own_about;
  lac_train_options own_options;
  lac_train_result own;
  if (!st) st = laci_take_train_about(about, &own_about, err);
  if (!st) st = laci_take_train_options(own_about.options, &own_options, err);
  if (!st) st = laci_take_train_result(result, &own, err);
  if (st) return st;
  own_about.options = &own_options;
  return laci_train_json(&own_about, &own, text, err);
}
