/* SPDX-License-Identifier: Apache-2.0
 * The public functions that return reports as JSON, made by report/json.h. */
#include "api/model/model_in.h"
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
  return st ? st : laci_eval_json(model->path, result, text, err);
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
  return st ? st : laci_train_json(about, result, text, err);
}
