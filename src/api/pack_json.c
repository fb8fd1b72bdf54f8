/* SPDX-License-Identifier: Apache-2.0
 * The report of packing as JSON; a piece that jansson could not make shows as `whole == false`. */
#include <jansson.h>
#include <string.h>

#include "api/pack_in.h"
#include "base/error.h"
#include "report/utf8.h"

typedef struct writer {
  laci_arena arena; /* repaired texts */
  bool whole;
} writer;

static void add(writer *w, json_t *object, const char *key, json_t *value) {
  if (json_object_set_new(object, key, value)) w->whole = false;
}

static json_t *text_or_null(writer *w, const char *text) {
  if (!text) return json_null();
  const char *clean = laci_utf8_clean(&w->arena, text);
  return clean ? json_string(clean) : NULL;
}

static json_t *bytes_of(uint64_t n) { return json_integer((json_int_t)n); }

static json_t *layer_json(writer *w, const lac_pack_layer *layer) {
  json_t *object = json_object(), *shape = json_array();
  for (int axis = 0; axis < layer->rank; axis++) {
    if (json_array_append_new(shape, json_integer(layer->shape[axis]))) w->whole = false;
  }
  add(w, object, "name", text_or_null(w, layer->name));
  add(w, object, "op", text_or_null(w, layer->op));
  add(w, object, "weight", text_or_null(w, layer->weight));
  add(w, object, "dtype", json_string(lac_dtype_name(layer->dtype)));
  add(w, object, "shape", shape);
  add(w, object, "packed", json_boolean(layer->packed));
  add(w, object, "dense_bytes", bytes_of(layer->dense_bytes));
  add(w, object, "packed_bytes", bytes_of(layer->packed_bytes));
  add(w, object, "reason", text_or_null(w, layer->reason));
  return object;
}

static json_t *report_json(writer *w, const lac_pack_report *report) {
  char pattern[32];
  (void)snprintf(pattern, sizeof pattern, "%d:%d", report->pattern_n, report->pattern_m);
  json_t *object = json_object(), *summary = json_object(), *layers = json_array();
  add(w, summary, "layers", json_integer(report->n_layers));
  add(w, summary, "packed_tensors", json_integer(report->n_packed));
  add(w, summary, "dense_bytes", bytes_of(report->dense_bytes));
  add(w, summary, "packed_bytes", bytes_of(report->packed_bytes));
  for (int l = 0; l < report->n_layers; l++) {
    if (json_array_append_new(layers, layer_json(w, &report->layers[l]))) w->whole = false;
  }
  add(w, object, "lacuna", json_string(lac_version()));
  add(w, object, "verb", json_string("pack"));
  add(w, object, "model", text_or_null(w, report->model));
  add(w, object, "pattern", json_string(pattern));
  add(w, object, "summary", summary);
  add(w, object, "layers", layers);
  return object;
}

lac_status lac_pack_report_json(const lac_pack_report *report, char **text, lac_error *err) {
  writer w = {.whole = true};
  lac_status st = LAC_OK;
  *text = NULL;
  if (!report) return laci_fail(err, LAC_BAD_ARGUMENT, "no report given");
  json_t *root = report_json(&w, report);
  char *dump = root && w.whole ? json_dumps(root, JSON_INDENT(2)) : NULL;
  size_t n = dump ? strlen(dump) : 0;
  char *out = dump ? laci_alloc(n + 2, 1) : NULL;
  if (out) {
    memcpy(out, dump, n);
    out[n] = '\n';
    *text = out;
  } else {
    st = laci_fail_memory(err, "the JSON report");
  }
  free(dump);
  json_decref(root);
  laci_arena_clear(&w.arena);
  return st;
}
