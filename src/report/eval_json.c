/* SPDX-License-Identifier: Apache-2.0
 * Writes the result of an evaluation as JSON. */
#include "base/json.h"
#include "lacuna/dtype.h"
#include "lacuna/eval.h"
#include "lacuna/version.h"
#include "report/json.h"

lac_status laci_eval_json(const char *model, const lac_eval_result *result, char **text,
                          lac_error *err) {
  laci_json_writer w = {.whole = true};
  json_t *root = json_object();
  laci_json_add(&w, root, "lacuna", json_string(lac_version()));
  laci_json_add(&w, root, "verb", json_string("eval"));
  laci_json_add(&w, root, "model", laci_json_text(&w, model));
  laci_json_add(&w, root, "images", json_integer((json_int_t)result->images));
  laci_json_add(&w, root, "top1", json_real(result->top1));
  laci_json_add(&w, root, "top5", json_real(result->top5));
  /* if the network gives a true class the probability 0, the loss is infinite, which becomes
     null */
  laci_json_add(&w, root, "loss", laci_json_number(result->loss));
  laci_json_add(&w, root, "images_per_second", json_real(result->images_per_second));
  laci_json_add(&w, root, "dtype", json_string(lac_dtype_name(result->dtype)));
  laci_json_add(&w, root, "nodes", json_integer(result->n_nodes));
  laci_json_add(&w, root, "exact_nodes", json_integer(result->n_exact));
  laci_json_add(&w, root, "exact_reason",
                laci_json_text(&w, result->exact_reason[0] ? result->exact_reason : NULL));
  /* with more than 15 digits, 56.1 would be written as 56.100000000000001, the nearest double */
  return laci_json_finish(&w, root, LACI_JSON_REPORT(15), "the JSON result", text, err);
}
