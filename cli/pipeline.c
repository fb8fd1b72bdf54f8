/* SPDX-License-Identifier: Apache-2.0
 * The pipeline of prune and permute. Everything that can be checked early is checked before the
 * long work; files are renamed last, after standard output was written. */
#include "pipeline.h"

#include "group.h"
#include "layers.h"
#include "outputs.h"
#include "predicted.h"
#include "targets.h"

static lac_status print_result(const arguments *args, const lac_report *report, lac_error *err) {
  lac_status st = layers_print(report, stdout, err);
  if (st) return st;
  layers_print_folded(args, report, stdout);
  layers_print_kept_magnitude(report, stdout);
  layers_print_calibration(report, stdout);
  layers_print_quantized(report, stdout);
  if (args->verb == VERB_prune) layers_print_pruned(report, stdout);
  layers_print_permuted(report, stdout);
  targets_print_summaries(report, stdout);
  prediction_print(report, stdout);
  return LAC_OK;
}

exit_code pipeline_run_verb(const arguments *args, pipeline_step *step, lac_error *err) {
  lac_model *model = NULL;
  lac_report *report = NULL;
  lac_options options;
  outputs plan = {0};
  lac_status st = outputs_plan_and_load(args, &options, &plan, &model, err);
  st = group_agree_on_status_without_timeout(args, st, err);
  if (!st) st = step(args, &options, model, &report, err);
  bool together = !st;
  if (!st) st = outputs_write(&plan, model, report, err);
  if (!st && !plan.uses_stdout) st = print_result(args, report, err);
  st = outputs_rename_or_remove(&plan, st, err);
  if (together) st = group_agree_on_status_without_timeout(args, st, err);
  if (!st) outputs_log(&plan);
  lac_report_destroy(report);
  lac_model_destroy(model);
  return exit_code_of_status(st);
}
