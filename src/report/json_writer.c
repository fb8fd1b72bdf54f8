/* SPDX-License-Identifier: Apache-2.0
 * What all of the command's JSON is written with. */
#include "report/json_writer.h"

#include <math.h>

#include "base/error.h"
#include "base/utf8.h"

void laci_json_add(laci_json_writer *w, json_t *object, const char *key, json_t *value) {
  if (json_object_set_new(object, key, value)) w->whole = false;
}

void laci_json_append(laci_json_writer *w, json_t *array, json_t *value) {
  if (json_array_append_new(array, value)) w->whole = false;
}

json_t *laci_json_text(laci_json_writer *w, const char *text) {
  if (!text) return json_null();
  const char *clean = laci_utf8_clean(&w->arena, text);
  return clean ? json_string(clean) : NULL;
}

json_t *laci_json_number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

lac_status laci_json_finish(laci_json_writer *w, json_t *root, int digits, const char *what,
                            char **text, lac_error *err) {
  const size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION((size_t)digits);
  size_t size = w->whole ? json_dumpb(root, NULL, 0, flags) : 0;
  char *copy = size > 0 ? laci_alloc(size + 2, 1) : NULL;
  *text = NULL;
  if (copy && json_dumpb(root, copy, size, flags) == size) {
    copy[size] = '\n';
    *text = copy;
  } else {
    laci_free(copy);
  }
  json_decref(root);
  laci_arena_clear(&w->arena);
  return *text ? LAC_OK : laci_fail_memory(err, what);
}
