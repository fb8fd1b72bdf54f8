/* SPDX-License-Identifier: Apache-2.0
 * Writes the part of a JSON report that is about calibration. */
#include "lacuna/calibration.h"
#include "lacuna/report.h"
#include "report/json_in.h"

static json_t *number_or_null(bool is_known, double value) {
  return is_known ? laci_json_number(value) : json_null();
}

static json_t *loss_curve_json(laci_json_writer *w, const lac_calibration_result *c) {
  if (c->n_curve == 0) return json_null();
  json_t *array = json_array();
  for (int k = 0; k < c->n_curve; k++) {
    json_t *point = json_object();
    laci_json_add(w, point, "layers", json_integer(k));
    laci_json_add(w, point, "layer", laci_json_text(w, c->curve[k].layer));
    laci_json_add(w, point, "effect", laci_json_number(c->curve[k].effect));
    laci_json_add(w, point, "outputs_error", laci_json_number(c->curve[k].outputs_error));
    laci_json_add(w, point, "top1", number_or_null(c->labelled > 0, c->curve[k].top1));
    laci_json_append(w, array, point);
  }
  return array;
}

static json_t *loss_drop_json(laci_json_writer *w, const lac_calibration_result *c) {
  if (!c->drop_measure) return json_null();
  json_t *object = json_object();
  laci_json_add(w, object, "measure", laci_json_text(w, c->drop_measure));
  laci_json_add(w, object, "limit", laci_json_number(c->drop_limit));
  laci_json_add(w, object, "found", laci_json_number(c->drop));
  laci_json_add(w, object, "most", laci_json_number(c->drop_most));
  laci_json_add(w, object, "confidence", laci_json_number(c->drop_confidence));
  laci_json_add(w, object, "samples", json_integer(c->drop_samples));
  return object;
}

json_t *laci_calibration_json(laci_json_writer *w, const lac_calibration_result *c) {
  if (!c) return json_null();
  const bool compared = !c->outputs_reason, labelled = c->labelled > 0;
  json_t *object = json_object();
  laci_json_add(w, object, "data", laci_json_text(w, c->data));
  laci_json_add(w, object, "score", laci_json_text(w, c->score));
  laci_json_add(w, object, "solved", json_boolean(c->solved));
  laci_json_add(w, object, "samples", json_integer(c->samples));
  laci_json_add(w, object, "held_back", json_integer(c->held_back));
  laci_json_add(w, object, "outputs_error", number_or_null(compared, c->outputs_error));
  laci_json_add(w, object, "agreement", number_or_null(compared && c->answers > 0, c->agreement));
  laci_json_add(w, object, "agreement_least",
                number_or_null(compared && c->agreement_least > 0, c->agreement_least));
  laci_json_add(w, object, "answers", json_integer(c->answers));
  laci_json_add(w, object, "top1_dense", number_or_null(labelled, c->top1_dense));
  laci_json_add(w, object, "top1_pruned", number_or_null(labelled, c->top1_pruned));
  laci_json_add(w, object, "labelled", json_integer(c->labelled));
  laci_json_add(w, object, "reason", laci_json_text(w, c->outputs_reason));
  laci_json_add(w, object, "kept_dense", json_integer(c->kept_dense));
  laci_json_add(w, object, "drop", loss_drop_json(w, c));
  laci_json_add(w, object, "curve", loss_curve_json(w, c));
  laci_json_add(w, object, "kept_bytes", laci_json_uint64(c->kept_bytes));
  laci_json_add(w, object, "file_bytes", laci_json_uint64(c->file_bytes));
  laci_json_add(w, object, "calibration_seconds", laci_json_number(c->seconds));
  laci_json_add(w, object, "fit_seconds", laci_json_number(c->fit_seconds));
  laci_json_add(w, object, "forecast_seconds",
                number_or_null(c->forecast_seconds > 0, c->forecast_seconds));
  laci_json_add(w, object, "forecast_bytes", laci_json_uint64(c->forecast_bytes));
  const bool refinement = c->error_fitted > 0;
  laci_json_add(w, object, "error_fitted", number_or_null(refinement, c->error_fitted));
  laci_json_add(w, object, "recalibrated", json_boolean(c->recalibrated));
  laci_json_add(w, object, "error_recalibrated",
                number_or_null(c->error_recalibrated > 0, c->error_recalibrated));
  laci_json_add(w, object, "refined", json_boolean(c->refined));
  laci_json_add(w, object, "error_refined", number_or_null(c->error_refined > 0, c->error_refined));
  laci_json_add(w, object, "refine_steps", json_integer(c->refine_steps));
  laci_json_add(w, object, "refine_seconds", laci_json_number(c->refine_seconds));
  laci_json_add(w, object, "refine_reason", laci_json_text(w, c->refine_reason));
  laci_json_add(w, object, "synthetic", json_boolean(c->synthetic));
  laci_json_add(w, object, "error_magnitude",
                number_or_null(c->error_magnitude > 0, c->error_magnitude));
  laci_json_add(w, object, "worst_error", number_or_null(compared, c->worst_error));
  laci_json_add(w, object, "worst_of", laci_json_text(w, c->worst_of));
  laci_json_add(w, object, "synthetic_added", json_integer(c->synthetic_added));
  laci_json_add(w, object, "error_alone", number_or_null(c->error_alone > 0, c->error_alone));
  laci_json_add(w, object, "error_added", number_or_null(c->error_added > 0, c->error_added));
  return object;
}

void laci_layer_json_add_calibration(laci_json_writer *w, json_t *object, const lac_layer *layer) {
  laci_json_add(w, object, "calibrated", json_boolean(layer->calibrated));
  laci_json_add(w, object, "solved", json_boolean(layer->solved));
  laci_json_add(w, object, "error_before", laci_json_number(layer->error_before));
  laci_json_add(w, object, "error_after", laci_json_number(layer->error_after));
  laci_json_add(w, object, "effect", laci_json_number(layer->effect));
}
