/* SPDX-License-Identifier: Apache-2.0
 * lac_inspect: analysis and report, without a change of the model. */
#include "api/model/model_in.h"
#include "api/prune/job_in.h"
#include "api/prune/prune_in.h"
#include "api/prune/report_in.h"
#include "api/run/infer.h"
#include "base/error.h"
#include "lacuna/plan.h"
#include "lacuna/prune.h"

/* Asks how an engine would run the network, and adds the answer to the report. */
static lac_status add_engine_plan(laci_report *report, const lac_model *model,
                                  const lac_engine_options *options, lac_error *err) {
  const lac_plan_node *nodes;
  if (!options) return LAC_OK;
  lac_status st = lac_plan_ask(model, options, &report->answer, err);
  if (st) return st;
  const lac_plan_facts *facts = laci_plan_answer_facts(report->answer, &nodes);
  const lac_plan_node **list =
      laci_arena_alloc(&report->arena, (size_t)facts->n_nodes, sizeof *list);
  if (!list) return laci_fail_memory(err, "the report");
  for (int at = 0; at < facts->n_nodes; at++) list[at] = &nodes[at];
  report->pub.plan = facts;
  report->pub.plan_nodes = list;
  return LAC_OK;
}

void laci_report_clear_plan(laci_report *report) { lac_plan_answer_destroy(report->answer); }

lac_status laci_inspect_model(const lac_model *model, const lac_options *options, lac_report **out,
                              lac_error *err) {
  laci_job job;
  laci_report *report = NULL;
  lac_status st = laci_job_open(model, options, &job, err);
  if (st) return st;
  st = laci_report_create(model, "inspect", options, job.analysis, &report, err);
  if (!st && job.streamed) laci_report_leave_unmeasured(report, model->path);
  else if (!st) st = laci_report_measure_weights(report, &job, options, err);
  if (!st && !job.streamed) st = laci_report_measure_computed_weights(report, &job, options, err);
  if (!st) laci_report_compute_sums(report);
  if (!st) st = add_engine_plan(report, model, options->plan, err);
  if (!st) {
    *out = &report->pub;
  } else if (report) {
    lac_report_destroy(&report->pub);
  }
  laci_job_close(&job);
  return st;
}
