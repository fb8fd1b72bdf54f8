/* SPDX-License-Identifier: Apache-2.0
 * The steps on the network as a whole, after the fits of its layers: opens the samples with more
 * augmented copies, for training steps and statistics, and adds the results to the report. */
#include "api/model/model_in.h"
#include "api/prune/calibration_in.h"
#include "api/prune/report_in.h"
#include "base/error.h"
#include "base/memory.h"
#include "data/samples.h"
#include "distill/distill.h"
#include "lacuna/calibration.h"
#include "lacuna/prune.h"

enum { LEAST_COPIES = 7 };

struct laci_distill_source {
  laci_samples *samples; /* the samples of the calibration, with more augmented copies */
  laci_calibration_samples list;
  laci_distill_options how;
  laci_distilled done;
};

lac_status laci_calibration_open_distill(const lac_model *model, const lac_options *options,
                                         const laci_job *job, laci_calibration_source *source,
                                         lac_error *err) {
  const lac_calibration *c = options->calibration;
  if (!c) return LAC_OK;
  const bool images = laci_samples_dataset(source->samples, NULL) != NULL;
  int copies = images && c->copies < LEAST_COPIES ? LEAST_COPIES : c->copies;
  if (!c->recalibrate && !(c->refine > 0) && c->refine_steps < 1) return LAC_OK;
  laci_distill_source *d = laci_alloc(1, sizeof *d);
  if (!d) return laci_fail_memory(err, c->data);
  source->distill = d;
  const laci_calibration_data from = {model->graph, options, job, source->given};
  lac_status st = laci_calibration_samples_open(&from, copies, &d->samples, err);
  if (st) return st;
  const int64_t held_back = laci_samples_count_held_back(d->samples);
  const int64_t distinct = (laci_samples_count(d->samples) - held_back) / (copies + 1);
  d->list = (laci_calibration_samples){.count = laci_samples_count(d->samples),
                                       .held_back = held_back,
                                       .shapes = source->shapes,
                                       .axes = source->axes,
                                       .constants = source->constants,
                                       .single = source->list.single,
                                       .n_shape_sets = source->list.n_shape_sets,
                                       .shape_sets = source->shape_sets,
                                       .shape_set_of = source->shape_set_of,
                                       .fetch = laci_calibration_fetch_samples,
                                       .context = d->samples,
                                       .engine = options->engine};
  d->how = (laci_distill_options){.samples = &d->list,
                                  .first_changed = copies > 0 ? distinct : 0,
                                  .recalibrate = c->recalibrate,
                                  .seconds = c->refine,
                                  .steps = c->refine_steps,
                                  .seed = options->seed};
  return LAC_OK;
}

void laci_calibration_close_distill(laci_distill_source *distill) {
  if (!distill) return;
  laci_samples_close(distill->samples);
  laci_free(distill);
}

lac_status laci_calibration_distill(laci_calibration_source *source, laci_pruning *pruning,
                                    const laci_prune_options *options, laci_pool *pool,
                                    lac_error *err) {
  laci_distill_source *d = source->distill;
  return d ? laci_distill(pruning, options, &d->how, pool, &d->done, err) : LAC_OK;
}

lac_status laci_report_add_distillation(laci_report *report, const laci_distill_source *distill,
                                        lac_calibration_result *to, lac_error *err) {
  if (!distill) return LAC_OK;
  const laci_distilled *from = &distill->done;
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
