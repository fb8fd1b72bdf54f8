/* SPDX-License-Identifier: Apache-2.0
 * What is sparse in a network, and whether it is another one reordered and masked. */
#include <string.h>

#include "api/against.h"
#include "api/apply.h"
#include "api/prune_in.h"
#include "base/error.h"

static void judge(laci_report *report, laci_pattern pattern) {
  for (int l = 0; l < report->pub.n_layers; l++) {
    lac_layer *layer = &report->layers[l];
    layer->pruned = laci_layer_is_pruned(layer, pattern.n);
    layer->kept = layer->kept_identity;
  }
  laci_report_sum(report);
}

static lac_status compare(const lac_model *original, const lac_model *model,
                          const lac_options *options, laci_report *report, lac_error *err) {
  laci_job job;
  laci_plan *plan = NULL;
  laci_report *orders = NULL;
  lac_status st = laci_job_open((lac_model *)original, options, &job, err);
  if (st) return st;
  laci_model_add_to(model, &job.budget);
  st = laci_plan_create(job.analysis, &plan, err);
  if (!st) st = laci_explain_changes(plan, model->graph, err);
  if (!st && options->verify) st = laci_prove_plan(plan, options, &job, report, err);
  if (!st) st = laci_report_create(original, "check", options, job.analysis, &orders, err);
  if (!st) st = laci_report_add_plan(orders, job.analysis, plan, err);
  for (int l = 0; !st && l < report->pub.n_layers && l < orders->pub.n_layers; l++) {
    report->layers[l].permuted_c = orders->layers[l].permuted_c;
    report->layers[l].permuted_k = orders->layers[l].permuted_k;
  }
  if (!st) laci_report_sum(report);
  if (!st) st = laci_report_keep_orders(report, job.analysis, plan, options, err);
  if (orders) lac_report_destroy(&orders->pub);
  laci_plan_destroy(plan);
  laci_job_close(&job);
  return st;
}

lac_status lac_check(const lac_model *model, const lac_model *original, const lac_options *options,
                     lac_report **out, lac_error *err) {
  if (out) *out = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"options", options}, {"report", out});
  if (st) return st;
  laci_job job;
  laci_report *report = NULL;
  laci_pattern pattern = {options->n, options->m};
  st = laci_job_open((lac_model *)model, options, &job, err);
  if (st) return st;
  st = laci_report_create(model, "check", options, job.analysis, &report, err);
  if (!st) st = laci_measure_layers(report, job.analysis, pattern, job.pool, err);
  if (!st) judge(report, pattern);
  if (!st && original) st = compare(original, model, options, report, err);
  laci_job_close(&job);
  if (!st) *out = &report->pub;
  else if (report) lac_report_destroy(&report->pub);
  return st;
}
