/* SPDX-License-Identifier: Apache-2.0
 * Copies the results of calibration to the plain data of a report. */
#include <stdio.h>

#include "analyze/analyze.h"
#include "api/prune/calibration_in.h"
#include "api/prune/report_in.h"
#include "base/binomial.h"
#include "base/error.h"
#include "data/samples.h"
#include "graph/graph.h"
#include "lacuna/calibration.h"

double laci_percent_of(int64_t part, int64_t of) {
  return of > 0 ? 100 * (double)part / (double)of : 0;
}

double laci_agreement_lower_bound(const laci_output_difference *d, int64_t n_held_back) {
  if (n_held_back < 1 || d->n_answers != d->n_samples) return 0;
  return 100 * laci_binomial_lower_bound(d->n_agree, d->n_answers, 1 - LACI_DROP_CONFIDENCE);
}

/* Adds the limit of the loss (max_drop) and the measured loss. */
static void add_loss_drop(const laci_judged_drop *from, double limit, lac_calibration_result *to) {
  static const char *const measures[] = {[LACI_DROP_TOP1] = "top1",
                                         [LACI_DROP_ANSWERS] = "answers",
                                         [LACI_DROP_OUTPUTS] = "outputs",
                                         [LACI_DROP_POSITIONS] = "positions"};
  if (from->n < 1) return;
  to->drop_measure = measures[from->measure];
  to->drop_limit = limit;
  to->drop_samples = from->n;
  to->drop = from->found;
  to->drop_most = from->most;
  to->drop_confidence = LACI_DROP_CONFIDENCE;
}

static bool add_loss_curve(laci_report *report, const laci_pruning_calibration *from,
                           lac_calibration_result *to) {
  if (from->n_points == 0) return true;
  lac_calibration_point *points =
      laci_arena_alloc(&report->arena, (size_t)from->n_points, sizeof *points);
  if (!points) return false;
  for (int k = 0; k < from->n_points; k++) {
    const laci_pruning_point *point = &from->points[k];
    points[k] = (lac_calibration_point){
        .layer = point->layer < 0 ? NULL : report->layers[point->layer].name,
        .effect = point->effect,
        .outputs_error = point->difference.relative,
        .top1 = laci_percent_of(point->difference.n_right_b, point->difference.n_labelled)};
  }
  to->curve = points;
  to->n_curve = from->n_points;
  return true;
}

/* If the outputs have several parts, adds the name of the part with the largest error. */
static bool add_worst_output(laci_report *report, const laci_graph *graph,
                             const laci_output_difference *d, lac_calibration_result *to) {
  static const char *const whats[] = {[LACI_OUTPUT_PART_NUMBERS] = "",
                                      [LACI_OUTPUT_PART_SMALL] = ", its smaller numbers",
                                      [LACI_OUTPUT_PART_ANSWERS] = ", answers that change"};
  char text[300];
  to->worst_error = laci_worst_part_error(d);
  int worst = 0;
  double most = -1;
  for (int p = 0; p < d->n_parts; p++) {
    const double error = laci_error_sums_ratio(&d->parts[p].sums);
    if (error <= most) continue;
    worst = p;
    most = error;
  }
  if (d->n_parts < 2) return true;
  (void)snprintf(text, sizeof text, "output '%.200s'%s",
                 graph->values[graph->outputs[d->parts[worst].output]].name,
                 whats[d->parts[worst].kind]);
  to->worst_of = laci_arena_text(&report->arena, text);
  return to->worst_of != NULL;
}

lac_status laci_report_add_calibration(laci_report *report, const laci_pruning *p,
                                       const laci_calibration_source *source, lac_error *err) {
  const laci_pruning_calibration *from = &p->calibration;
  const laci_output_difference *outputs = &from->outputs;
  if (!from->done) return LAC_OK;
  lac_calibration_result *to = laci_arena_alloc(&report->arena, 1, sizeof *to);
  if (!to) return laci_fail_memory(err, "the report");
  *to = (lac_calibration_result){
      .data = laci_arena_text(&report->arena, laci_samples_description(source->samples)),
      .score = from->score,
      .solved = source->calibration.solve,
      .samples = from->n_fitted,
      .held_back = from->n_held_back,
      .outputs_error = outputs->relative,
      .answers = outputs->n_answers,
      .agreement = laci_percent_of(outputs->n_agree, outputs->n_answers),
      .labelled = outputs->n_labelled,
      .top1_dense = laci_percent_of(outputs->n_right_a, outputs->n_labelled),
      .top1_pruned = laci_percent_of(outputs->n_right_b, outputs->n_labelled),
      .kept_dense = from->n_kept_dense,
      .kept_bytes = from->values_bytes,
      .file_bytes = from->file_bytes,
      .seconds = from->seconds,
      .fit_seconds = from->fit_seconds,
      .forecast_seconds = from->forecast_seconds,
      .forecast_bytes = from->forecast_bytes,
      .synthetic = source->is_synthetic,
      .error_magnitude = from->error_magnitude,
      .synthetic_added = laci_samples_count_drawn(source->samples),
      .error_alone = source->error_data,
      .error_added = source->error_mixed};
  to->agreement_least = laci_agreement_lower_bound(outputs, from->n_held_back);
  add_loss_drop(&from->drop, source->calibration.max_drop, to);
  bool whole = to->data && add_loss_curve(report, from, to) &&
               add_worst_output(report, p->analysis->graph, outputs, to);
  if (from->outputs_reason) {
    to->outputs_reason = laci_arena_text(&report->arena, from->outputs_reason);
    whole = whole && to->outputs_reason;
  }
  for (int l = 0; l < p->analysis->n_layers; l++) {
    const laci_pruned_layer *layer = &p->layers[l];
    report->layers[l].calibrated = layer->calibrated;
    report->layers[l].solved = layer->solved;
    report->layers[l].error_before = layer->error_before;
    report->layers[l].error_after = layer->error_after;
    report->layers[l].effect = layer->effect;
  }
  for (int g = 0; p->orders && g < report->pub.n_groups; g++) {
    report->groups[g].judged = p->orders[g].judged;
    report->groups[g].error_before = p->orders[g].error_before;
    report->groups[g].error_after = p->orders[g].error_after;
  }
  report->pub.calibration = to;
  lac_status st = laci_report_add_distillation(report, source->distill, to, err);
  if (st) return st;
  return whole ? LAC_OK : laci_fail_memory(err, "the report");
}
