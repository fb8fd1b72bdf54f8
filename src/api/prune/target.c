/* SPDX-License-Identifier: Apache-2.0
 * Adds to a report how the targets handle its layers. */
#include <stdio.h>

#include "analyze/analyze.h"
#include "api/prune/job_in.h"
#include "api/prune/predict_in.h"
#include "api/prune/report_in.h"
#include "api/prune/target_plan_in.h"
#include "base/error.h"
#include "base/memory.h"
#include "lacuna/prune.h"
#include "prune/prune.h"
#include "target/target.h"

const char *const *lac_target_names(int *n) { return laci_target_names(n); }

lac_status laci_targets_find(const lac_options *options, laci_target_choice **choices,
                             lac_error *err) {
  lac_status st = LAC_OK;
  *choices = NULL;
  if (!options->n_targets) return LAC_OK;
  *choices = laci_alloc((size_t)options->n_targets, sizeof **choices);
  if (!*choices) return laci_fail_memory(err, "the targets");
  for (int t = 0; !st && t < options->n_targets; t++)
    st = laci_target_find(options->targets[t], &(*choices)[t], err);
  return st;
}

static const char *copy_text(laci_report *report, const char *text, bool *ok) {
  const char *copy = text && text[0] ? laci_arena_text(&report->arena, text) : NULL;
  *ok = *ok && (copy || !text || !text[0]);
  return copy;
}

static const char *gain_text(laci_report *report, const laci_target *target,
                             const laci_target_gain *gain, bool *ok) {
  char text[2 * LACI_TARGET_TEXT], source[LACI_TARGET_TEXT];
  if (!gain) return NULL;
  (void)snprintf(text, sizeof text, "%s: %s", gain->of,
                 laci_target_source_text(target, gain->source, source));
  return copy_text(report, text, ok);
}

/* Adds `by` to the count of this answer: 1, or -1 to take it back. */
static void count_target_answer(lac_target_report *to, lac_target_answer answer, int by) {
  to->n_dense += by * (answer == LAC_TARGET_DENSE);
  to->n_taken += by * (answer == LAC_TARGET_TAKEN);
  to->n_refused += by * (answer == LAC_TARGET_REFUSED);
  to->n_not_stated += by * (answer == LAC_TARGET_NOT_STATED);
}

static lac_status ask_target_about_layer(laci_report *report, const laci_target_choice *choice,
                                         const laci_target_layer *seen, lac_target_layer *to,
                                         lac_error *err) {
  laci_target_answer found;
  bool ok = true;
  lac_status st = laci_target_judge_weight(choice, seen, &found, err);
  if (st) return st;
  *to = (lac_target_layer){.answer = found.answer,
                           .fault = laci_target_fault_name(found.fault),
                           .pays = found.pays,
                           .gain = found.gain ? found.gain->times : 0,
                           .gain_of = gain_text(report, choice->target, found.gain, &ok),
                           .reason = copy_text(report, found.reason, &ok)};
  return ok ? LAC_OK : laci_fail_memory(err, "the report");
}

static lac_status add_target_layers(laci_report *report, const laci_job *job,
                                    const laci_pruning *pruning, int target, lac_error *err) {
  const laci_analysis *a = job->analysis;
  lac_target_report *to = &report->targets[target];
  lac_target_layer *layers = laci_arena_alloc(&report->arena, (size_t)a->n_rows, sizeof *layers);
  if (!layers) return laci_fail_memory(err, "the report");
  to->layers = report->target_layers[target] = layers;
  for (int l = 0; l < a->n_layers; l++) {
    laci_target_layer seen;
    laci_analysis_describe_target_layer(a, l, &seen);
    const uint8_t *fresh = pruning ? pruning->weights[a->layers[l].stored] : NULL;
    if (fresh) seen.view.bytes = fresh;
    lac_status st = ask_target_about_layer(report, &job->targets[target], &seen, &layers[l], err);
    if (st) return st;
    count_target_answer(to, layers[l].answer, 1);
  }
  for (int l = a->n_layers; l < a->n_rows; l++) { /* rows with computed weights count as dense until
                                                     they are measured */
    layers[l].reason = report->layers[l].reason;
    count_target_answer(to, LAC_TARGET_DENSE, 1);
  }
  return LAC_OK;
}

/* Replaces the answers for the library's own engine by those of its plan: a layer that has the
 * zeros but is run as dense is not accelerated. */
static lac_status replace_answers_by_plan(laci_report *report, const laci_job *job,
                                          const lac_options *options, const laci_pruning *pruning,
                                          int target, lac_error *err) {
  const laci_analysis *a = job->analysis;
  const laci_predict_source from = {a, pruning ? (const uint8_t *const *)pruning->weights : NULL,
                                    options->threads, job->targets[target].as == LAC_DTYPE_BF16};
  laci_prediction plan;
  lac_status st = laci_predict_times(&from, &report->arena, &plan, err);
  for (int l = 0; l < a->n_layers && !st; l++) {
    lac_target_layer *layer = &report->target_layers[target][l];
    if (layer->answer != LAC_TARGET_TAKEN || plan.layers[l].sparse) continue;
    count_target_answer(&report->targets[target], layer->answer, -1);
    *layer = (lac_target_layer){.answer = LAC_TARGET_REFUSED,
                                .fault = laci_target_fault_name(LACI_FAULT_PLAN),
                                .reason = plan.layers[l].reason};
    count_target_answer(&report->targets[target], layer->answer, 1);
  }
  return st;
}

lac_status laci_report_add_computed_target(laci_report *report, const laci_job *job, int l,
                                           const laci_weight_view *view, lac_error *err) {
  lac_status st = LAC_OK;
  for (int t = 0; t < report->pub.n_targets && !st; t++) {
    laci_target_layer seen;
    lac_target_layer *to = &report->target_layers[t][l];
    laci_analysis_describe_target_layer(job->analysis, l, &seen);
    seen.view = *view;
    count_target_answer(&report->targets[t], to->answer, -1);
    st = ask_target_about_layer(report, &job->targets[t], &seen, to, err);
    count_target_answer(&report->targets[t], to->answer, 1);
  }
  return st;
}

lac_status laci_report_add_targets(laci_report *report, const laci_job *job,
                                   const lac_options *options, const laci_pruning *pruning,
                                   lac_error *err) {
  bool ok = true;
  if (!options->n_targets) return LAC_OK;
  const size_t n = (size_t)options->n_targets;
  lac_target_report *targets = laci_arena_alloc(&report->arena, n, sizeof *targets);
  report->targets = targets;
  report->target_layers = laci_arena_alloc(&report->arena, n, sizeof *report->target_layers);
  if (!targets || !report->target_layers) return laci_fail_memory(err, "the report");
  for (int t = 0; t < options->n_targets; t++) {
    const laci_target *target = job->targets[t].target;
    targets[t] = (lac_target_report){.name = copy_text(report, options->targets[t], &ok),
                                     .title = target->title,
                                     .needs = target->needs};
    lac_status st = add_target_layers(report, job, pruning, t, err);
    if (!st && !job->streamed && laci_target_is_own_engine(&job->targets[t]))
      st = replace_answers_by_plan(report, job, options, pruning, t, err);
    if (st) return st;
  }
  report->pub.n_targets = options->n_targets;
  report->pub.targets = targets;
  return ok ? LAC_OK : laci_fail_memory(err, "the report");
}
