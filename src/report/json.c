/* SPDX-License-Identifier: Apache-2.0
 * Writes the report of pruning as JSON. Next: base/json.h. */
#include "report/json.h"

#include <string.h>

#include "lacuna/report.h"
#include "lacuna/version.h"
#include "report/json_in.h"

/* Returns the number as JSON; null for 0, which means that it is not known. */
static json_t *count_json_or_null(int64_t count) {
  return count > 0 ? json_integer(count) : json_null();
}

static json_t *id_json_or_null(int id) { return id < 0 ? json_null() : json_integer(id); }

static json_t *text_array_json(laci_json_writer *w, const char *const *items, int n) {
  json_t *array = json_array();
  for (int i = 0; i < n; i++) laci_json_append(w, array, laci_json_text(w, items[i]));
  return array;
}

/* Returns the results of the verification as JSON; null if there was none, since it was not
 * requested or nothing was reordered. */
static json_t *verified_json(laci_json_writer *w, const lac_summary *summary) {
  if (!summary->proof_engine) return json_null();
  json_t *object = json_object();
  laci_json_add(w, object, "engine", laci_json_text(w, summary->proof_engine));
  laci_json_add(w, object, "values", json_integer(summary->values_compared));
  laci_json_add(w, object, "skipped", json_integer(summary->values_skipped));
  laci_json_add(w, object, "outputs", json_integer(summary->outputs));
  laci_json_add(w, object, "outputs_compared", json_integer(summary->outputs_compared));
  laci_json_add(w, object, "reason", laci_json_text(w, summary->skipped_reason));
  return object;
}

static json_t *verification_state_json(const lac_summary *summary) {
  switch (summary->verification) {
    case LAC_VERIFIED: return json_string("verified");
    case LAC_VERIFIED_IN_PART: return json_string("partial");
    case LAC_NOT_VERIFIED: return json_string("not verified");
    default: return json_null(); /* it was not requested, or nothing was reordered */
  }
}

static json_t *verification_json(laci_json_writer *w, const lac_summary *summary) {
  json_t *object = json_object();
  bool some = summary->outputs_compared > 0;
  laci_json_add(w, object, "state", verification_state_json(summary));
  laci_json_add(w, object, "outputs", json_integer(summary->outputs));
  laci_json_add(w, object, "outputs_compared", json_integer(summary->outputs_compared));
  laci_json_add(w, object, "reached", laci_json_text(w, summary->reached));
  laci_json_add(w, object, "reason", laci_json_text(w, summary->skipped_reason));
  laci_json_add(w, object, "max_abs_error",
                some ? laci_json_number(summary->max_abs_error) : json_null());
  laci_json_add(w, object, "max_abs_output",
                some ? laci_json_number(summary->max_abs_output) : json_null());
  laci_json_add(w, object, "values_compared", json_integer(summary->values_compared));
  laci_json_add(w, object, "values_skipped", json_integer(summary->values_skipped));
  laci_json_add(w, object, "engine", laci_json_text(w, summary->proof_engine));
  return object;
}

static json_t *report_summary_json(laci_json_writer *w, const lac_summary *summary) {
  json_t *object = json_object();
  laci_json_add(w, object, "layers", json_integer(summary->layers));
  laci_json_add(w, object, "eligible", json_integer(summary->eligible));
  laci_json_add(w, object, "permuted", json_integer(summary->permuted));
  laci_json_add(w, object, "reordered", json_integer(summary->reordered));
  laci_json_add(w, object, "pruned", json_integer(summary->pruned));
  laci_json_add(w, object, "groups", json_integer(summary->groups));
  laci_json_add(w, object, "folded", json_integer(summary->folded));
  if (summary->unmeasured) laci_json_add(w, object, "measured", json_false());
  laci_json_add(w, object, "kept_before", laci_json_number(summary->kept_before));
  laci_json_add(w, object, "kept_after", laci_json_number(summary->kept_after));
  laci_json_add(w, object, "verified", json_boolean(summary->verified));
  laci_json_add(w, object, "max_abs_error", laci_json_number(summary->max_abs_error));
  laci_json_add(w, object, "max_abs_output", laci_json_number(summary->max_abs_output));
  laci_json_add(w, object, "worst_ratio", laci_json_number(summary->worst_ratio));
  laci_json_add(w, object, "values_compared", json_integer(summary->values_compared));
  laci_json_add(w, object, "values_skipped", json_integer(summary->values_skipped));
  laci_json_add(w, object, "proof", verified_json(w, summary));
  laci_json_add(w, object, "interrupted", json_boolean(summary->interrupted));
  laci_json_add(w, object, "search_seconds", laci_json_number(summary->search_seconds));
  laci_json_add(w, object, "proof_seconds", laci_json_number(summary->proof_seconds));
  laci_json_add(w, object, "total_seconds", laci_json_number(summary->total_seconds));
  return object;
}

static json_t *permuted_axes_json(laci_json_writer *w, bool k, bool c) {
  json_t *axes = json_array();
  if (k) laci_json_append(w, axes, json_string("K"));
  if (c) laci_json_append(w, axes, json_string("C"));
  return axes;
}

json_t *laci_layer_json(laci_json_writer *w, const laci_layer_name *layer) {
  json_t *object = json_object(), *shape = json_array();
  for (int axis = 0; axis < layer->rank; axis++)
    laci_json_append(w, shape, json_integer(layer->shape[axis]));
  laci_json_add(w, object, "name", laci_json_text(w, layer->name));
  laci_json_add(w, object, "op", laci_json_text(w, layer->op));
  laci_json_add(w, object, "weight", laci_json_text(w, layer->weight));
  laci_json_add(w, object, "dtype", json_string(lac_dtype_name(layer->dtype)));
  laci_json_add(w, object, "shape", shape);
  return object;
}

static json_t *report_layer_json(laci_json_writer *w, const lac_layer *layer, bool calibrated) {
  const laci_layer_name name = {.name = layer->name,
                                .op = layer->op,
                                .weight = layer->weight,
                                .dtype = layer->dtype,
                                .rank = layer->rank,
                                .shape = layer->shape};
  json_t *object = laci_layer_json(w, &name);
  laci_json_add(w, object, "channels_in", count_json_or_null(layer->channels_in));
  laci_json_add(w, object, "channels_out", count_json_or_null(layer->channels_out));
  laci_json_add(w, object, "convolution_groups", count_json_or_null(layer->convolution_groups));
  laci_json_add(w, object, "computed", json_boolean(layer->computed));
  laci_json_add(w, object, "storable", json_boolean(layer->storable));
  laci_json_add(w, object, "folded", json_boolean(layer->folded));
  laci_json_add(w, object, "eligible", json_boolean(layer->eligible));
  laci_json_add(w, object, "pruned", json_boolean(layer->pruned));
  laci_json_add(w, object, "permuted", permuted_axes_json(w, layer->permuted_k, layer->permuted_c));
  laci_json_add(w, object, "permutable",
                permuted_axes_json(w, layer->permutable_k, layer->permutable_c));
  laci_json_add(w, object, "searchable", json_boolean(layer->searchable));
  laci_json_add(w, object, "group_c", id_json_or_null(layer->group_c));
  laci_json_add(w, object, "group_k", id_json_or_null(layer->group_k));
  laci_json_add(w, object, "zeros", layer->measured ? json_integer(layer->n_zeros) : json_null());
  laci_json_add(w, object, "elements", count_json_or_null(layer->n_elements));
  laci_json_add(w, object, "zero_ratio",
                layer->measured ? laci_json_number(layer->zero_ratio) : json_null());
  laci_json_add(w, object, "holds_pattern", json_boolean(layer->holds_pattern));
  laci_json_add(w, object, "holds_pattern_both", json_boolean(layer->holds_pattern_both));
  laci_json_add(w, object, "kept_identity", laci_json_number(layer->kept_identity));
  laci_json_add(w, object, "kept", laci_json_number(layer->kept));
  laci_json_add(w, object, "total", laci_json_number(layer->total));
  if (layer->score_total > 0) {
    laci_json_add(w, object, "score_kept", laci_json_number(layer->score_kept));
    laci_json_add(w, object, "score_total", laci_json_number(layer->score_total));
  }
  laci_json_add(w, object, "reason", laci_json_text(w, layer->reason));
  if (calibrated) laci_layer_json_add_calibration(w, object, layer);
  return object;
}

static json_t *group_permutation_json(laci_json_writer *w, const lac_group *group) {
  if (!group->permutation) return json_null();
  json_t *array = json_array();
  for (int i = 0; i < group->channels; i++)
    laci_json_append(w, array, json_integer(group->permutation[i]));
  return array;
}

static json_t *report_group_json(laci_json_writer *w, const lac_group *group, bool calibrated) {
  json_t *object = json_object();
  laci_json_add(w, object, "id", json_integer(group->id));
  laci_json_add(w, object, "channels", json_integer(group->channels));
  laci_json_add(w, object, "consumers", text_array_json(w, group->consumers, group->n_consumers));
  laci_json_add(w, object, "producers", text_array_json(w, group->producers, group->n_producers));
  laci_json_add(w, object, "frozen", json_boolean(group->frozen));
  laci_json_add(w, object, "cause", laci_json_text(w, group->cause));
  laci_json_add(w, object, "permutation", group_permutation_json(w, group));
  laci_json_add(w, object, "kept_identity", laci_json_number(group->kept_identity));
  laci_json_add(w, object, "kept", laci_json_number(group->kept));
  laci_json_add(w, object, "upper_bound", laci_json_number(group->upper_bound));
  laci_json_add(w, object, "efficacy", laci_json_number(group->efficacy));
  laci_json_add(w, object, "strategy", laci_json_text(w, group->strategy));
  laci_json_add(w, object, "iterations", json_integer(group->iterations));
  laci_json_add(w, object, "proven", json_boolean(group->proven));
  if (!calibrated) return object;
  laci_json_add(w, object, "judged", json_boolean(group->judged));
  laci_json_add(w, object, "error_before", laci_json_number(group->error_before));
  laci_json_add(w, object, "error_after", laci_json_number(group->error_after));
  return object;
}

json_t *laci_pattern_json(int n, int m) { return m ? json_sprintf("%d:%d", n, m) : json_null(); }

static const char *target_answer_name(lac_target_answer answer) {
  static const char *const words[] = {[LAC_TARGET_DENSE] = "dense",
                                      [LAC_TARGET_TAKEN] = "taken",
                                      [LAC_TARGET_REFUSED] = "refused",
                                      [LAC_TARGET_NOT_STATED] = "not stated"};
  return words[answer];
}

static json_t *pays_off_json(lac_target_pays pays) {
  if (pays == LAC_TARGET_PAYS_NOT_STATED) return json_null();
  return json_boolean(pays == LAC_TARGET_PAYS);
}

static json_t *target_layer_json(laci_json_writer *w, const char *name,
                                 const lac_target_layer *layer) {
  json_t *object = json_object();
  laci_json_add(w, object, "name", laci_json_text(w, name));
  laci_json_add(w, object, "answer", json_string(target_answer_name(layer->answer)));
  laci_json_add(w, object, "fault", laci_json_text(w, layer->fault));
  laci_json_add(w, object, "pays", pays_off_json(layer->pays));
  laci_json_add(w, object, "gain", layer->gain > 0 ? laci_json_number(layer->gain) : json_null());
  laci_json_add(w, object, "gain_of", laci_json_text(w, layer->gain_of));
  laci_json_add(w, object, "reason", laci_json_text(w, layer->reason));
  return object;
}

static json_t *target_json(laci_json_writer *w, const lac_report *report,
                           const lac_target_report *target) {
  json_t *object = json_object(), *layers = json_array();
  for (int i = 0; i < report->n_layers; i++)
    laci_json_append(w, layers, target_layer_json(w, report->layers[i].name, &target->layers[i]));
  laci_json_add(w, object, "name", laci_json_text(w, target->name));
  laci_json_add(w, object, "title", laci_json_text(w, target->title));
  laci_json_add(w, object, "needs", laci_json_text(w, target->needs));
  laci_json_add(w, object, "taken", json_integer(target->n_taken));
  laci_json_add(w, object, "refused", json_integer(target->n_refused));
  laci_json_add(w, object, "not_stated", json_integer(target->n_not_stated));
  laci_json_add(w, object, "dense", json_integer(target->n_dense));
  laci_json_add(w, object, "layers", layers);
  return object;
}

/* Adds the field of targets, if any were requested. */
static void add_targets_json(laci_json_writer *w, json_t *object, const lac_report *report) {
  if (!report->n_targets) return;
  json_t *targets = json_array();
  for (int t = 0; t < report->n_targets; t++)
    laci_json_append(w, targets, target_json(w, report, &report->targets[t]));
  laci_json_add(w, object, "targets", targets);
}

static json_t *report_json(laci_json_writer *w, const lac_report *report) {
  json_t *object = json_object(), *layers = json_array(), *groups = json_array();
  for (int i = 0; i < report->n_layers; i++)
    laci_json_append(w, layers,
                     report_layer_json(w, &report->layers[i], report->calibration != NULL));
  for (int i = 0; i < report->n_groups; i++)
    laci_json_append(w, groups,
                     report_group_json(w, &report->groups[i], report->calibration != NULL));
  laci_json_add(w, object, "lacuna", json_string(lac_version()));
  laci_json_add(w, object, "verb", laci_json_text(w, report->verb));
  laci_json_add(w, object, "model", laci_json_text(w, report->model));
  laci_json_add(w, object, "pattern", laci_json_text(w, report->pattern));
  if (report->mask) laci_json_add(w, object, "mask", laci_json_text(w, report->mask));
  if (report->score) laci_json_add(w, object, "score", laci_json_text(w, report->score));
  laci_json_add(w, object, "seed", laci_json_uint64(report->seed));
  laci_json_add(w, object, "summary", report_summary_json(w, &report->summary));
  laci_json_add(w, object, "verification", verification_json(w, &report->summary));
  if (report->calibration)
    laci_json_add(w, object, "calibration", laci_calibration_json(w, report->calibration));
  if (report->uncalibrated)
    laci_json_add(w, object, "uncalibrated", laci_json_text(w, report->uncalibrated));
  if (report->corrected) laci_json_add(w, object, "corrected", json_integer(report->corrected));
  laci_json_add(w, object, "layers", layers);
  laci_json_add(w, object, "groups", groups);
  if (report->quantization)
    laci_json_add(w, object, "quantisation", laci_quantization_json(w, report->quantization));
  add_targets_json(w, object, report);
  if (report->prediction) laci_json_add(w, object, "prediction", laci_prediction_json(w, report));
  if (report->plan)
    laci_json_add(w, object, "plan", laci_plan_json(w, report->plan, report->plan_nodes));
  return object;
}

lac_status laci_report_json(const lac_report *report, char **text, lac_error *err) {
  laci_json_writer w = {.whole = true};
  return laci_json_finish(&w, report_json(&w, report), LACI_JSON_REPORT(17), "the report's JSON",
                          text, err);
}
