/* SPDX-License-Identifier: Apache-2.0
 * The report of packing as JSON. */
#include <stdio.h>

#include "base/json.h"
#include "report/json.h"

static json_t *bytes_of(uint64_t n) { return json_integer((json_int_t)n); }

static json_t *layer_json(laci_json_writer *w, const lac_pack_layer *layer) {
  json_t *object = json_object(), *shape = json_array();
  for (int axis = 0; axis < layer->rank; axis++) {
    laci_json_append(w, shape, json_integer(layer->shape[axis]));
  }
  laci_json_add(w, object, "name", laci_json_text(w, layer->name));
  laci_json_add(w, object, "op", laci_json_text(w, layer->op));
  laci_json_add(w, object, "weight", laci_json_text(w, layer->weight));
  laci_json_add(w, object, "dtype", json_string(lac_dtype_name(layer->dtype)));
  laci_json_add(w, object, "shape", shape);
  laci_json_add(w, object, "packed", json_boolean(layer->packed));
  laci_json_add(w, object, "dense_bytes", bytes_of(layer->dense_bytes));
  laci_json_add(w, object, "packed_bytes", bytes_of(layer->packed_bytes));
  laci_json_add(w, object, "reason", laci_json_text(w, layer->reason));
  return object;
}

static json_t *report_json(laci_json_writer *w, const lac_pack_report *report) {
  char pattern[32];
  (void)snprintf(pattern, sizeof pattern, "%d:%d", report->pattern_n, report->pattern_m);
  json_t *object = json_object(), *summary = json_object(), *layers = json_array();
  laci_json_add(w, summary, "layers", json_integer(report->n_layers));
  laci_json_add(w, summary, "packed_tensors", json_integer(report->n_packed));
  laci_json_add(w, summary, "dense_bytes", bytes_of(report->dense_bytes));
  laci_json_add(w, summary, "packed_bytes", bytes_of(report->packed_bytes));
  for (int l = 0; l < report->n_layers; l++) {
    laci_json_append(w, layers, layer_json(w, &report->layers[l]));
  }
  laci_json_add(w, object, "lacuna", json_string(lac_version()));
  laci_json_add(w, object, "verb", json_string("pack"));
  laci_json_add(w, object, "model", laci_json_text(w, report->model));
  laci_json_add(w, object, "pattern", json_string(pattern));
  laci_json_add(w, object, "summary", summary);
  laci_json_add(w, object, "layers", layers);
  return object;
}

lac_status laci_pack_json(const lac_pack_report *report, char **text, lac_error *err) {
  laci_json_writer w = {.whole = true};
  return laci_json_finish(&w, report_json(&w, report), LACI_JSON_REPORT(17), "the JSON report",
                          text, err);
}
