/* SPDX-License-Identifier: Apache-2.0
 * Writes the report of packing as JSON. */
#include "lacuna/dtype.h"
#include "lacuna/pack.h"
#include "lacuna/version.h"
#include "report/json.h"
#include "report/json_in.h"

static json_t *byte_count_json(uint64_t n) { return json_integer((json_int_t)n); }

static json_t *packed_layer_json(laci_json_writer *w, const lac_pack_layer *layer) {
  const laci_layer_name name = {.name = layer->name,
                                .op = layer->op,
                                .weight = layer->weight,
                                .dtype = layer->dtype,
                                .rank = layer->rank,
                                .shape = layer->shape};
  json_t *object = laci_layer_json(w, &name);
  laci_json_add(w, object, "packed", json_boolean(layer->packed));
  laci_json_add(w, object, "dense_bytes", byte_count_json(layer->dense_bytes));
  laci_json_add(w, object, "packed_bytes", byte_count_json(layer->packed_bytes));
  laci_json_add(w, object, "reason", laci_json_text(w, layer->reason));
  return object;
}

static json_t *report_json(laci_json_writer *w, const lac_pack_report *report) {
  json_t *object = json_object(), *summary = json_object(), *layers = json_array();
  laci_json_add(w, summary, "layers", json_integer(report->n_layers));
  laci_json_add(w, summary, "packed_tensors", json_integer(report->n_packed));
  laci_json_add(w, summary, "dense_bytes", byte_count_json(report->dense_bytes));
  laci_json_add(w, summary, "packed_bytes", byte_count_json(report->packed_bytes));
  for (int l = 0; l < report->n_layers; l++) {
    laci_json_append(w, layers, packed_layer_json(w, &report->layers[l]));
  }
  laci_json_add(w, object, "lacuna", json_string(lac_version()));
  laci_json_add(w, object, "verb", json_string("pack"));
  laci_json_add(w, object, "model", laci_json_text(w, report->model));
  laci_json_add(w, object, "pattern", laci_pattern_json(report->pattern_n, report->pattern_m));
  laci_json_add(w, object, "summary", summary);
  laci_json_add(w, object, "layers", layers);
  return object;
}

lac_status laci_pack_json(const lac_pack_report *report, char **text, lac_error *err) {
  laci_json_writer w = {.whole = true};
  return laci_json_finish(&w, report_json(&w, report), LACI_JSON_REPORT(17), "the JSON report",
                          text, err);
}
