/* SPDX-License-Identifier: Apache-2.0
 * The network as a whole, behind the fits of its layers: samples in more copies, changed as
 * training changes images, which steps and statistics are made of; and what came of it. */
#include "api/calibration_in.h"
#include "api/job_in.h"
#include "api/model_in.h"
#include "api/report_in.h"
#include "base/error.h"
#include "data/samples.h"
#include "graph/graph.h"
#include "lacuna/calibration.h"
#include "lacuna/prune.h"

enum { LEAST_COPIES = 7 };

lac_status laci_calibration_open_refinement(const lac_model *model, const lac_options *options,
                                            const laci_job *job, laci_calibration_source *source,
                                            lac_error *err) {
  const lac_calibration *c = options->calibration;
  if (!c) return LAC_OK;
  const bool images = laci_samples_dataset(source->samples, NULL) != NULL;
  int copies = images && c->copies < LEAST_COPIES ? LEAST_COPIES : c->copies;
  if (!c->recalibrate && !(c->refine > 0) && c->refine_steps < 1) return LAC_OK;
  lac_status st =
      laci_calibration_samples_open(model->graph, options, job, copies, &source->changed, err);
  if (st) return st;
  const int64_t held_back = laci_samples_held_back(source->changed);
  const int64_t distinct = (laci_samples_count(source->changed) - held_back) / (copies + 1);
  source->changed_list = (laci_calibration_samples){.count = laci_samples_count(source->changed),
                                                    .held_back = held_back,
                                                    .shapes = source->shapes,
                                                    .fetch = laci_calibration_fetch_samples,
                                                    .context = source->changed};
  source->refinement = (laci_prune_refinement){.samples = &source->changed_list,
                                               .first_changed = copies > 0 ? distinct : 0,
                                               .recalibrate = c->recalibrate,
                                               .seconds = c->refine,
                                               .steps = c->refine_steps,
                                               .seed = options->seed};
  source->calibration.refinement = &source->refinement;
  return LAC_OK;
}

lac_status laci_report_add_refinement(laci_report *report, const laci_pruning_calibration *p,
                                      lac_calibration_result *to, lac_error *err) {
  const laci_pruning_refinement *from = &p->refinement;
  to->error_fitted = from->error_fitted;
  to->recalibrated = from->recalibrated;
  to->error_recalibrated = from->error_recalibrated;
  to->refined = from->refined;
  to->error_refined = from->error_refined;
  to->refine_steps = from->steps;
  to->refine_seconds = from->seconds;
  if (!from->reason) return LAC_OK;
  to->refine_reason = laci_arena_text(&report->arena, from->reason);
  return to->refine_reason ? LAC_OK : laci_fail_memory(err, "the report");
}
