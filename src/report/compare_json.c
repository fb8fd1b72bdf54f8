/* SPDX-License-Identifier: Apache-2.0
 * Writes a comparison of two networks as JSON, and as a drawing. */
#include <math.h>
#include <string.h>

#include "lacuna/compare.h"
#include "lacuna/version.h"
#include "report/json.h"
#include "report/json_in.h"

static json_t *compared_value_json(laci_json_writer *w, const lac_compare_value *value) {
  json_t *object = json_object(), *shape = json_array();
  for (int axis = 0; axis < value->rank; axis++)
    laci_json_append(w, shape, json_integer((json_int_t)value->shape[axis]));
  laci_json_add(w, object, "name", laci_json_text(w, value->name));
  laci_json_add(w, object, "other", laci_json_text(w, value->other));
  laci_json_add(w, object, "op", laci_json_text(w, value->op));
  laci_json_add(w, object, "shape", shape);
  laci_json_add(w, object, "matched", json_string(value->by_name ? "name" : "structure"));
  laci_json_add(w, object, "output", json_boolean(value->is_output));
  laci_json_add(w, object, "reordered", json_boolean(value->reordered));
  laci_json_add(w, object, "same_shape", json_boolean(value->same_shape));
  laci_json_add(w, object, "error", laci_json_number(value->error));
  laci_json_add(w, object, "largest", laci_json_number(value->largest));
  laci_json_add(w, object, "scale", laci_json_number(value->scale));
  return object;
}

/* Do the two networks differ too much in this value? They do if its error is larger than the
 * tolerance, or if it could not be compared. */
static bool is_beyond_tolerance(const lac_compare_result *r, const lac_compare_value *value) {
  return !(value->error <= r->tolerance);
}

static json_t *compare_summary_json(laci_json_writer *w, const lac_compare_result *r) {
  int n_apart = 0, n_named = 0, n_reordered = 0;
  const lac_compare_value *first = NULL, *worst = NULL;
  for (int at = 0; at < r->n_values; at++) {
    const lac_compare_value *value = &r->values[at];
    n_named += value->by_name;
    n_reordered += value->reordered;
    if (is_beyond_tolerance(r, value) && n_apart++ == 0) first = value;
    if (!worst || value->error > worst->error) worst = value;
  }
  json_t *object = json_object();
  laci_json_add(w, object, "nodes", json_integer(r->n_nodes));
  laci_json_add(w, object, "nodes_other", json_integer(r->n_other));
  laci_json_add(w, object, "compared", json_integer(r->n_values));
  laci_json_add(w, object, "by_name", json_integer(n_named));
  laci_json_add(w, object, "by_structure", json_integer(r->n_values - n_named));
  laci_json_add(w, object, "reordered", json_integer(n_reordered));
  laci_json_add(w, object, "apart", json_integer(n_apart));
  laci_json_add(w, object, "first_apart", laci_json_text(w, first ? first->name : NULL));
  laci_json_add(w, object, "worst", laci_json_text(w, worst ? worst->name : NULL));
  laci_json_add(w, object, "worst_error", worst ? laci_json_number(worst->error) : json_null());
  return object;
}

lac_status laci_compare_json(const lac_compare_result *r, char **text, lac_error *err) {
  laci_json_writer w = {.whole = true};
  json_t *root = json_object(), *layers = json_array();
  for (int at = 0; at < r->n_values; at++)
    laci_json_append(&w, layers, compared_value_json(&w, &r->values[at]));
  laci_json_add(&w, root, "lacuna", json_string(lac_version()));
  laci_json_add(&w, root, "verb", json_string("compare"));
  laci_json_add(&w, root, "model", laci_json_text(&w, r->model));
  laci_json_add(&w, root, "other", laci_json_text(&w, r->other));
  laci_json_add(&w, root, "runtime", r->runtime ? laci_json_text(&w, r->runtime) : json_null());
  laci_json_add(&w, root, "inputs", json_string(r->given ? "given" : "random"));
  laci_json_add(&w, root, "seed", laci_json_uint64(r->seed));
  laci_json_add(&w, root, "tolerance", laci_json_number(r->tolerance));
  laci_json_add(&w, root, "summary", compare_summary_json(&w, r));
  laci_json_add(&w, root, "layers", layers);
  return laci_json_finish(&w, root, LACI_JSON_REPORT(9), "the comparison", text, err);
}
