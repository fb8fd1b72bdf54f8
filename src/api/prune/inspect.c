/* SPDX-License-Identifier: Apache-2.0
 * lac_inspect: analysis and report, without a change of the model. */
#include "api/model/model_in.h"
#include "api/prune/job_in.h"
#include "api/prune/prune_in.h"
#include "api/prune/report_in.h"
#include "lacuna/prune.h"

lac_status laci_inspect_model(const lac_model *model, const lac_options *options, lac_report **out,
                              lac_error *err) {
  laci_job job;
  laci_report *report = NULL;
  lac_status st = laci_job_open(model, options, &job, err);
  if (st) return st;
  st = laci_report_create(model, "inspect", options, job.analysis, &report, err);
  if (!st && job.streamed) laci_report_leave_unmeasured(report, model->path);
  else if (!st) st = laci_report_measure(report, &job, options, err);
  if (!st && !job.streamed) st = laci_report_measure_computed(report, &job, options, err);
  if (!st) laci_report_compute_sums(report);
  if (!st) {
    *out = &report->pub;
  } else if (report) {
    lac_report_destroy(&report->pub);
  }
  laci_job_close(&job);
  return st;
}
