/* SPDX-License-Identifier: Apache-2.0
 * Does the fit improve if drawn (synthetic) samples are added to the samples of the data? Fits with
 * and without the drawn samples are compared on samples of the data that neither fit has read. */
#include "analyze/analyze.h"
#include "api/prune/calibration_in.h"
#include "api/prune/job_in.h"
#include "api/prune/rule_in.h"
#include "base/divide.h"
#include "base/log.h"
#include "base/plural.h"
#include "calibrate/walk.h"
#include "data/samples.h"
#include "lacuna/prune.h"

/* Fits all eligible layers to the samples. *error: error of the outputs on the samples held back.
 * *comparable: outputs could be compared; if not, *error is not set. */
static lac_status measure_error_after_fit(const lac_options *options, const laci_job *job,
                                          const laci_calibration_source *source, double *error,
                                          bool *comparable, lac_error *err) {
  const laci_mask_rule rule = laci_mask_rule_of(options);
  const laci_calibrate_options how = {.pattern = rule.pattern,
                                      .form = rule.form,
                                      .v = rule.v,
                                      .seed = options->seed,
                                      .score = source->calibration.score,
                                      .solve = source->calibration.solve,
                                      .budget = &job->budget,
                                      .pool = job->pool};
  const laci_calibration_samples *list = &source->list;
  const laci_graph *graph = job->analysis->graph;
  laci_calibrated *fitted = NULL;
  laci_output_difference difference;
  lac_status st = laci_calibrate(job->analysis, list, &how, &fitted, err);
  if (st) return st;
  *comparable = !fitted->outputs_reason;
  const int64_t fixed = laci_calibration_required_batch(graph, list);
  const int64_t batch = fixed > 0 ? fixed : 1;
  const laci_weighted_graph dense = {.graph = graph};
  const laci_weighted_graph pruned = {graph, (const uint8_t *const *)fitted->weights};
  const int64_t n = laci_ceil_div(list->held_back, batch) * batch;
  const laci_compare_options compared = {
      .first = list->count - n, .n = n, .batch = batch, .pool = job->pool, .budget = &job->budget};
  if (*comparable && n <= list->count) {
    st = laci_compare_outputs(&dense, &pruned, list, &compared, &difference, err);
    if (!st) *error = difference.relative;
  }
  laci_calibrated_destroy(fitted);
  return st;
}

/* Lists the samples again, after they changed. */
static lac_status list_samples_again(const laci_job *job, laci_calibration_source *source,
                                     const int64_t *labels, lac_error *err) {
  const char *engine = source->list.engine;
  laci_calibration_clear_list(source);
  lac_status st = laci_calibration_describe_samples(job->analysis->graph, source, err);
  source->list.engine = engine;
  source->list.labels = labels ? laci_samples_labels(source->samples) : NULL;
  return st;
}

lac_status laci_calibration_judge_drawn(const lac_options *options, const laci_job *job,
                                        laci_calibration_source *source, lac_error *err) {
  laci_calibration_source alone = {.samples = laci_samples_of_data(source->samples),
                                   .calibration = source->calibration,
                                   .list = {.engine = source->list.engine}};
  const int64_t n_held = source->list.held_back;
  bool comparable = false;
  lac_status st =
      measure_error_after_fit(options, job, source, &source->error_mixed, &comparable, err);
  if (st || !comparable) return st;
  st = list_samples_again(job, &alone, NULL, err);
  if (!st)
    st = measure_error_after_fit(options, job, &alone, &source->error_data, &comparable, err);
  laci_calibration_clear_list(&alone);
  if (st) return st;
  const bool better = source->error_mixed < source->error_data;
  laci_log(LAC_LOG_INFO,
           "on %lld sample%s of the data held back, outputs differ by %.3g %% with %lld synthetic "
           "ones and by %.3g %% without: these are %s",
           (long long)n_held, laci_plural(n_held), 100 * source->error_mixed,
           (long long)laci_samples_count_drawn(source->samples), 100 * source->error_data,
           better ? "used" : "left out");
  if (better) return LAC_OK;
  laci_samples_drop_drawn(&source->samples);
  return list_samples_again(job, source, source->list.labels, err);
}
