/* SPDX-License-Identifier: Apache-2.0
 * `lacuna plot`: draws the operation graph of a network without changing the network. */
#include "outputs.h"
#include "verbs.h"

exit_code verb_plot(const arguments *args, lac_error *err) {
  lac_model *model = NULL;
  lac_report *report = NULL;
  lac_options options;
  outputs plan = {0};
  lac_status st = outputs_plan_and_load(args, &options, &plan, &model, err);
  if (!st) st = lac_inspect(model, &options, &report, err);
  if (!st) st = outputs_write(&plan, model, report, err);
  st = outputs_rename_or_remove(&plan, st, err);
  if (!st) outputs_log(&plan);
  lac_report_destroy(report);
  lac_model_destroy(model);
  return exit_code_of_status(st);
}
