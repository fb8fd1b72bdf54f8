/* SPDX-License-Identifier: Apache-2.0
 * Writes the field "prediction" of a report's JSON. */
#include "lacuna/report.h"
#include "report/json_in.h"

static json_t *seconds_json_or_null(double seconds) {
  return seconds > 0 ? laci_json_number(seconds) : json_null();
}

static json_t *predicted_layer_json(laci_json_writer *w, const char *name,
                                    const lac_predicted_layer *layer) {
  json_t *object = json_object();
  laci_json_add(w, object, "name", laci_json_text(w, name));
  laci_json_add(w, object, "dense_seconds", seconds_json_or_null(layer->dense_seconds));
  laci_json_add(w, object, "pruned_seconds", seconds_json_or_null(layer->pruned_seconds));
  laci_json_add(w, object, "multiplications", json_integer(layer->multiplications));
  laci_json_add(w, object, "sparse", json_boolean(layer->sparse));
  laci_json_add(w, object, "reason", laci_json_text(w, layer->reason));
  return object;
}

json_t *laci_prediction_json(laci_json_writer *w, const lac_report *report) {
  const lac_prediction *p = report->prediction;
  json_t *object = json_object(), *layers = json_array(), *reasons = json_array();
  for (int r = 0; r < p->n_reasons; r++) {
    json_t *one = json_object();
    laci_json_add(w, one, "reason", laci_json_text(w, p->reasons[r].reason));
    laci_json_add(w, one, "layers", json_integer(p->reasons[r].n_layers));
    laci_json_append(w, reasons, one);
  }
  for (int l = 0; l < report->n_layers; l++)
    laci_json_append(w, layers, predicted_layer_json(w, report->layers[l].name, &p->layers[l]));
  laci_json_add(w, object, "refusal", laci_json_text(w, p->refusal));
  laci_json_add(w, object, "assumed_sizes", json_boolean(p->assumed_sizes));
  laci_json_add(w, object, "costs_known", json_boolean(p->costs_known));
  laci_json_add(w, object, "threads", json_integer(p->threads));
  laci_json_add(w, object, "dense_seconds", seconds_json_or_null(p->dense_seconds));
  laci_json_add(w, object, "pruned_seconds", seconds_json_or_null(p->pruned_seconds));
  laci_json_add(w, object, "multiplications", json_integer(p->multiplications));
  laci_json_add(w, object, "multiplications_pruned", json_integer(p->multiplications_pruned));
  laci_json_add(w, object, "sparse", json_integer(p->n_sparse));
  laci_json_add(w, object, "dense", json_integer(p->n_dense));
  laci_json_add(w, object, "reasons", reasons);
  laci_json_add(w, object, "layers", layers);
  return object;
}
