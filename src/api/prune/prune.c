/* SPDX-License-Identifier: Apache-2.0
 * lac_prune and lac_permute: analysis, the work of src/prune, and the report. */
#include "lacuna/prune.h"

#include <string.h>

#include "analyze/analyze.h"
#include "api/model/model_in.h"
#include "api/prune/calibration_in.h"
#include "api/prune/job_in.h"
#include "api/prune/prune_in.h"
#include "api/prune/quantize_in.h"
#include "api/prune/report_in.h"
#include "api/prune/rule_in.h"
#include "api/prune/timing_in.h"
#include "api/run/process_group_in.h"
#include "base/clock.h"
#include "lacuna/process_group.h"

static laci_permute_for permute_goal_of_options(const lac_options *options) {
  const bool magnitude = options->permute_for && strcmp(options->permute_for, "magnitude") == 0;
  return magnitude ? LACI_FOR_MAGNITUDE : LACI_FOR_SCORE;
}

laci_prune_options laci_prune_options_of(const lac_options *options, const laci_job *job) {
  const laci_mask_rule rule = laci_mask_rule_of(options);
  return (laci_prune_options){.pattern = rule.pattern,
                              .form = rule.form,
                              .v = rule.v,
                              .permute = options->permute,
                              .keep_pruned = options->keep_pruned,
                              .permute_for = permute_goal_of_options(options),
                              .correct = options->correct,
                              .verify = options->verify,
                              .engine = options->engine,
                              .search = {.effort = (laci_effort)options->effort,
                                         .seed = options->seed,
                                         .strategy = options->strategy,
                                         .seconds = options->time_limit},
                              .spill = job->streamed,
                              .budget = &job->budget,
                              .comm = laci_process_group_comm(options->group)};
}

/* Every step that can fail comes before the first change of the model. */
lac_status laci_prune_once(lac_model *model, lac_options *options, laci_prune_kind *kind,
                           lac_report **out, lac_error *err) {
  const bool mask = kind->mask;
  double start = laci_clock_seconds();
  laci_job job;
  laci_calibration_source source = {.samples = NULL};
  laci_score_arrays scores = {.n = 0};
  laci_timing *timing = NULL;
  laci_pruning *pruning = NULL;
  laci_report *report = NULL;
  laci_quantization *quantized = NULL;
  lac_status st = laci_job_open(model, options, &job, err);
  if (!st && mask) st = laci_analysis_check_targets(job.analysis, err);
  if (!st && mask) st = laci_target_exclude_planned_dense(&job, options, err);
  if (!st && mask) st = laci_check_quantization(model, options, err);
  if (!st) st = laci_check_engine_of_plugin(options, mask && options->calibration, err);
  st = lac_process_group_agree(options->group, st, err);
  if (st) {
    laci_job_close(&job);
    return st;
  }
  if (mask && laci_calibration_can_be_skipped(job.analysis, options, &kind->unfit))
    options->calibration = NULL;
  if (mask && options->calibration) st = laci_job_materialise(&job, model, err);
  laci_prune_options how = laci_prune_options_of(options, &job);
  how.mask = mask;
  if (!st) st = laci_score_arrays_open(options, &job, &scores, err);
  how.scores = (const float *const *)scores.arrays;
  if (mask && !st) st = laci_calibration_open(model, options, &job, &source, err);
  if (mask && !st) st = laci_calibration_open_distill(model, options, &job, &source, err);
  st = lac_process_group_agree(options->group, st, err);
  if (!st) st = laci_timing_open(&job, options, &timing, err);
  how.timing = laci_timing_get_interface(timing);
  how.calibration = source.samples ? &source.calibration : NULL;
  how.permute = kind->permute && laci_calibration_can_judge_orders(&source);
  if (!st) st = laci_prune_begin(job.analysis, &how, job.pool, &pruning, err);
  if (!st) st = laci_calibration_distill(&source, pruning, &how, job.pool, err);
  if (!st) st = laci_prune_end(pruning, &how, job.pool, err);
  if (!st) {
    const char *verb = mask ? "prune" : "permute";
    st = laci_report_create(model, verb, options, job.analysis, &report, err);
    if (!st) st = laci_report_set_uncalibrated(report, kind->unfit.text, err);
    if (!st) st = laci_report_add_pruning(report, pruning, err);
    if (!st) st = laci_report_add_calibration(report, pruning, &source, err);
    if (!st && mask) st = laci_report_add_targets(report, &job, options, pruning, err);
    if (!st && mask && !options->quantization)
      st = laci_report_add_prediction(report, &job, options, pruning, err);
    const laci_quantize_source from = {model, options, &job, pruning, &source};
    if (!st && mask) st = laci_quantize_model(&from, report, &quantized, err);
    st = lac_process_group_agree(options->group, st, err);
  }
  if (!st) {
    laci_pruning_commit(pruning, model->graph);
    laci_report_remeasure_computed_weights(report, &job, options);
    if (!how.permute) report->pub.summary.permuted = report->pub.summary.groups = 0;
    report->pub.summary.total_seconds = laci_clock_seconds() - start;
    *out = &report->pub;
  } else if (report) {
    lac_report_destroy(&report->pub);
  }
  laci_pruning_destroy(pruning);
  laci_calibration_close(&source);
  laci_score_arrays_close(&scores);
  laci_timing_close(timing);
  laci_job_close(&job);
  if (!st) laci_quantized_commit(model, quantized);
  return st;
}
