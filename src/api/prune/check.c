/* SPDX-License-Identifier: Apache-2.0
 * lac_check: which layers of a network are sparse, and whether it is a reordered and masked
 * original. */
#include "api/model/model_in.h"
#include "api/prune/job_in.h"
#include "api/prune/prune_in.h"
#include "api/prune/report_in.h"
#include "api/prune/target_plan_in.h"
#include "api/prune/timing_in.h"

/* Finds the channel orders that lead from the original to the model. *known is false if only
 * outputs could be compared. */
static lac_status find_orders(laci_pruning *found, const lac_model *model,
                              const laci_prune_options *how, laci_pool *pool, bool *known,
                              lac_error *err) {
  lac_error why = {0};
  lac_status st = laci_pruning_find_orders(found, model->graph, &why);
  *known = st == LAC_OK;
  if (st == LAC_PROOF_FAILED)
    return laci_pruning_compare_unexplained(found, model->graph, how, pool, &why, err);
  if (st && err) *err = why;
  return st;
}

/* Finds the channel orders that lead from the original to the model, and verifies that they do not
 * change its outputs. */
static lac_status find_and_verify_orders(const lac_model *original, const lac_model *model,
                                         const lac_options *options, laci_report *report,
                                         lac_error *err) {
  laci_job job;
  laci_pruning *found = NULL;
  lac_status st = laci_job_open(original, options, &job, err);
  if (st) return st;
  laci_model_add_stored_to_budget(model, &job.budget);
  st = laci_job_materialise(&job, original, err);
  if (!st) st = laci_model_materialise(model, err); /* every element is compared */
  const laci_prune_options how = laci_prune_options_of(options, &job);
  if (!st) st = laci_pruning_create(job.analysis, how.pattern, &found, err);
  bool known = false;
  if (!st) st = find_orders(found, model, &how, job.pool, &known, err);
  if (!st && known) st = laci_pruning_verify(found, &how, job.pool, err);
  if (!st) st = laci_report_add_verification(report, found, err);
  if (!st && known) st = laci_report_add_orders(report, found, err);
  if (!st) laci_report_compute_sums(report);
  laci_pruning_destroy(found);
  laci_job_close(&job);
  return st;
}

lac_status laci_check_model(const lac_model *model, const lac_model *original,
                            const lac_options *options, lac_report **out, lac_error *err) {
  laci_job job;
  laci_report *report = NULL;
  lac_status st = laci_job_open(model, options, &job, err);
  if (st) return st;
  st = laci_check_engine_of_plugin(options, original != NULL, err);
  if (!st) st = laci_target_exclude_planned_dense(&job, options, err);
  if (!st) st = laci_report_create(model, "check", options, job.analysis, &report, err);
  if (!st) st = laci_report_measure_weights(report, &job, options, err);
  if (!st) st = laci_report_add_targets(report, &job, options, NULL, err);
  if (!st && laci_targets_include_own_engine(&job, options))
    st = laci_report_add_prediction(report, &job, options, NULL, err);
  if (!st) st = laci_report_measure_computed_weights(report, &job, options, err);
  if (!st && original) st = find_and_verify_orders(original, model, options, report, err);
  laci_job_close(&job);
  if (!st) *out = &report->pub;
  else if (report) lac_report_destroy(&report->pub);
  return st;
}
