/* SPDX-License-Identifier: Apache-2.0
 * Writes and reads all JSON of the program. */
#include "base/json.h"

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
  const char *clean = laci_utf8_replace_invalid(&w->arena, text);
  return clean ? json_string(clean) : NULL;
}

json_t *laci_json_number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

json_t *laci_json_uint64(uint64_t value) {
  return value > INT64_MAX ? json_sprintf("%llu", (unsigned long long)value)
                           : json_integer((json_int_t)value);
}

lac_status laci_json_finish(laci_json_writer *w, json_t *root, size_t flags, const char *what,
                            char **text, lac_error *err) {
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

lac_status laci_json_read(const char *name, const char *what, const char *text, json_t **root,
                          lac_error *err) {
  json_error_t where;
  *root = json_loads(text, JSON_REJECT_DUPLICATES, &where);
  if (*root) return LAC_OK;
  /* An empty text means that an allocation failed. */
  if (!where.text[0]) return laci_fail_memory(err, name);
  return laci_fail(err, LAC_BAD_FILE, "%s:%d: not %s: %s", name, where.line, what, where.text);
}
