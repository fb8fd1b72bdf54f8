/* SPDX-License-Identifier: Apache-2.0
 * Opens calibration data for the network's inputs, checks that they fit, and passes them to
 * src/prune as samples. Next: prune/calibrated.c. */
#include "lacuna/calibration.h"

#include <string.h>

#include "api/model/given_samples.h"
#include "api/model/model_in.h"
#include "api/prune/calibration_in.h"
#include "api/run/eval_in.h"
#include "base/error.h"
#include "base/min.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/samples.h"
#include "graph/graph.h"
#include "lacuna/prune.h"

/* Checks that the images fit the network's input. *classes: whether their classes are the network's
 * outputs. */
static lac_status check_images_fit(const laci_graph *graph, const laci_samples *samples,
                                   bool *classes, lac_error *err) {
  laci_preprocessing preprocessing;
  laci_image_input input = {.batch = 1};
  const laci_dataset *set = laci_samples_dataset(samples, &preprocessing);
  *classes = true;
  if (!set) return LAC_OK;
  lac_status st = laci_fit_images_to_network(graph, set, &preprocessing, &input, err);
  if (!st) *classes = laci_check_class_count(graph, set, NULL) == LAC_OK;
  return st;
}

/* Checks before any work that there are enough samples to measure the loss (max_drop) in addition
 * to those for fitting. */
static lac_status check_samples_for_loss(const laci_graph *graph, const lac_calibration *c,
                                         const laci_samples *samples, lac_error *err) {
  if (c->max_drop < 0) return LAC_OK;
  const char *unit = laci_is_classifier(graph) ? "points" : "percent";
  const int64_t least = laci_drop_least_samples(c->max_drop, laci_is_classifier(graph));
  const int64_t judging = laci_samples_count_judging(samples);
  if (judging >= least) return LAC_OK;
  if (least == INT64_MAX) {
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "a loss of at most %g %s: no number of samples shows that nothing is lost; "
                     "wanted more than 0",
                     c->max_drop, unit);
  }
  return laci_fail(err, LAC_BAD_VALUE,
                   "%s: %lld samples, too few to say with %g %% confidence that at most %g %s are "
                   "lost: wanted %lld or more, of which %lld judge",
                   c->data, (long long)laci_samples_count_available(samples),
                   100 * LACI_DROP_CONFIDENCE, c->max_drop, unit,
                   (long long)(least + laci_min(LACI_LEAST_FITTED, c->samples)), (long long)least);
}

lac_status laci_calibration_open(const lac_model *model, const lac_options *options,
                                 const laci_job *job, laci_calibration_source *source,
                                 lac_error *err) {
  const laci_graph *graph = model->graph;
  const lac_calibration *c = options->calibration;
  bool classes = false;
  *source = (laci_calibration_source){.samples = NULL};
  if (!c) return LAC_OK;
  lac_status st = laci_check_calibration(options, err);
  if (!st && c->from_memory) { st = laci_given_samples_open(c->from_memory, &source->given, err); }
  const laci_calibration_data from = {graph, options, job, source->given};
  if (!st) st = laci_calibration_samples_open(&from, c->copies, &source->samples, err);
  if (!st) st = check_images_fit(graph, source->samples, &classes, err);
  if (!st) st = check_samples_for_loss(graph, c, source->samples, err);
  const bool mixed = c->synthetic && !laci_calibration_is_drawn(c);
  if (!st && mixed) st = laci_calibration_mix(&from, &source->samples, err);
  if (!st) st = laci_calibration_describe_samples(graph, source, err);
  if (st) {
    laci_calibration_close(source);
    return st;
  }
  source->is_synthetic = c->synthetic && !mixed;
  source->list.engine = options->engine;
  source->list.labels = classes ? laci_samples_labels(source->samples) : NULL;
  source->calibration = (laci_prune_calibration){.samples = &source->list,
                                                 .score = laci_score_of_options(options),
                                                 .solve = c->solve,
                                                 .keep_dense = c->keep_dense,
                                                 .max_drop = c->max_drop,
                                                 .curve = c->curve,
                                                 .drawn = source->is_synthetic,
                                                 .must_gain = c->optional};
  st = mixed ? laci_calibration_judge_drawn(options, job, source, err) : LAC_OK;
  if (st) {
    laci_calibration_close(source);
    return st;
  }
  laci_log(LAC_LOG_INFO, "calibration: %s; score %s%s", laci_samples_description(source->samples),
           laci_score_name_of_options(options), c->solve ? ", kept weights solved" : "");
  return LAC_OK;
}

bool laci_calibration_can_judge_orders(const laci_calibration_source *source) {
  if (!source->samples || !source->calibration.drawn) return true;
  laci_log(LAC_LOG_INFO, "channels stay in the file's order: drawn samples cannot judge another");
  return false;
}

void laci_calibration_close(laci_calibration_source *source) {
  laci_calibration_close_distill(source->distill);
  laci_samples_close(source->samples);
  laci_given_samples_close(source->given);
  laci_calibration_clear_list(source);
  *source = (laci_calibration_source){.samples = NULL};
}
