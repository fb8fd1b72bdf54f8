/* SPDX-License-Identifier: Apache-2.0
 * Writes as JSON what was measured of the tensors in a file without a network. */
#include "lacuna/tensor_file.h"
#include "lacuna/version.h"
#include "report/json.h"
#include "report/json_in.h"

static json_t *tensor_json(laci_json_writer *w, const lac_file_tensor *tensor) {
  json_t *object = json_object(), *shape = json_array();
  for (int axis = 0; axis < tensor->rank; axis++)
    laci_json_append(w, shape, json_integer((json_int_t)tensor->shape[axis]));
  laci_json_add(w, object, "name", laci_json_text(w, tensor->name));
  laci_json_add(w, object, "dtype", laci_json_text(w, tensor->type));
  laci_json_add(w, object, "shape", shape);
  laci_json_add(w, object, "elements", json_integer((json_int_t)tensor->n_elements));
  laci_json_add(w, object, "zeros",
                tensor->n_zeros < 0 ? json_null() : json_integer((json_int_t)tensor->n_zeros));
  laci_json_add(w, object, "pattern_axis",
                tensor->pattern_axis < 0 ? json_null() : json_integer(tensor->pattern_axis));
  return object;
}

lac_status laci_tensor_file_json(const laci_tensor_list *list, char **text, lac_error *err) {
  laci_json_writer w = {.whole = true};
  json_t *object = json_object(), *tensors = json_array();
  for (int at = 0; at < list->count; at++)
    laci_json_append(&w, tensors, tensor_json(&w, &list->tensors[at]));
  laci_json_add(&w, object, "lacuna", json_string(lac_version()));
  laci_json_add(&w, object, "verb", json_string("inspect"));
  laci_json_add(&w, object, "file", laci_json_text(&w, list->path));
  laci_json_add(&w, object, "pattern", laci_pattern_json(list->n, list->m));
  laci_json_add(&w, object, "tensors", tensors);
  return laci_json_finish(&w, object, LACI_JSON_REPORT(17), "the JSON report", text, err);
}
