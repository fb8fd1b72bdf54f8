/* SPDX-License-Identifier: Apache-2.0
 * The functions of lacuna/prune.h: arguments are checked, and the caller's options are copied.
 * Next: prune.c, inspect.c, check.c, permutation.c, which do the work. */
#include "lacuna/prune.h"

#include "analyze/analyze.h"
#include "api/model/model_in.h"
#include "api/model/structs.h"
#include "api/prune/job_in.h"
#include "api/prune/options_in.h"
#include "api/prune/prune_in.h"
#include "base/error.h"

lac_status lac_prune(lac_model *model, const lac_options *options, lac_report **report,
                     lac_error *err) {
  laci_own_options own;
  if (report) *report = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"options", options}, {"report", report});
  if (!st) st = laci_own_options_copy(options, &own, err);
  if (st) return st;
  lac_context *before = laci_call_enter_context(own.options.context);
  st = laci_prune_model(model, &own.options, own.options.permute, true, report, err);
  laci_call_leave_context(before);
  return st;
}

lac_status lac_permute(lac_model *model, const lac_options *options, lac_report **report,
                       lac_error *err) {
  laci_own_options own;
  if (report) *report = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"options", options}, {"report", report});
  if (!st) st = laci_own_options_copy(options, &own, err);
  if (st) return st;
  lac_context *before = laci_call_enter_context(own.options.context);
  st = laci_prune_model(model, &own.options, true, false, report, err);
  laci_call_leave_context(before);
  return st;
}

lac_status lac_inspect(const lac_model *model, const lac_options *options, lac_report **report,
                       lac_error *err) {
  laci_own_options own;
  if (report) *report = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"options", options}, {"report", report});
  if (!st) st = laci_own_options_copy(options, &own, err);
  if (st) return st;
  lac_context *before = laci_call_enter_context(own.options.context);
  st = laci_inspect_model(model, &own.options, report, err);
  laci_call_leave_context(before);
  return st;
}

lac_status lac_inspect_why(const lac_model *model, const lac_options *options, const char *node,
                           char **text, lac_error *err) {
  laci_own_options own;
  laci_job job;
  if (text) *text = NULL;
  lac_status st =
      LACI_CHECK_GIVEN(err, {"model", model}, {"options", options}, {"node", node}, {"text", text});
  if (!st) st = laci_own_options_copy(options, &own, err);
  if (st) return st;
  lac_context *before = laci_call_enter_context(own.options.context);
  st = laci_job_open(model, &own.options, &job, err);
  if (!st) {
    st = laci_analysis_explain_node(job.analysis, node, text, err);
    laci_job_close(&job);
  }
  laci_call_leave_context(before);
  return st;
}

lac_status lac_check(const lac_model *model, const lac_model *original, const lac_options *options,
                     lac_report **report, lac_error *err) {
  laci_own_options own;
  if (report) *report = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"options", options}, {"report", report});
  if (!st) st = laci_own_options_copy(options, &own, err);
  if (st) return st;
  lac_context *before = laci_call_enter_context(own.options.context);
  st = laci_check_model(model, original, &own.options, report, err);
  laci_call_leave_context(before);
  return st;
}

lac_status lac_permutation_apply(lac_model *model, const char *path, bool invert,
                                 const lac_options *options, lac_report **report, lac_error *err) {
  laci_own_options own;
  if (report) *report = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"path", path}, {"options", options},
                                   {"report", report});
  if (!st) st = laci_own_options_copy(options, &own, err);
  if (st) return st;
  lac_context *before = laci_call_enter_context(own.options.context);
  st = laci_apply_permutation(model, path, invert, &own.options, report, err);
  laci_call_leave_context(before);
  return st;
}
