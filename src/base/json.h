/* SPDX-License-Identifier: Apache-2.0
 * Writes and reads JSON with jansson, with one check of all failures at the end.
 *
 * jansson's *_new functions take ownership of a value even when it is NULL, and then fail. So a
 * missing value anywhere makes the next laci_json_add fail, and one flag says at the end whether
 * there was enough memory. All JSON texts of the program are made here, so that none can lack a
 * part without notice. */
#ifndef LACI_BASE_JSON_H
#define LACI_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "lacuna/status.h"

/** A JSON text in the making. Initialize it with {.whole = true}. */
typedef struct laci_json_writer {
  laci_arena arena; /* memory of texts whose UTF-8 was repaired */
  bool whole;       /* nothing failed so far */
} laci_json_writer;

/** Adds a value to the object under the key, or appends it to the array. Takes ownership of the
 * value. If it is NULL, or memory runs out, sets w->whole to false. */
void laci_json_add(laci_json_writer *w, json_t *object, const char *key, json_t *value);
void laci_json_append(laci_json_writer *w, json_t *array, json_t *value);

/** Returns a JSON text, or null for NULL; invalid UTF-8 is repaired. */
json_t *laci_json_text(laci_json_writer *w, const char *text);

/** Returns a JSON number, or null where the value is not finite, which JSON cannot express. */
json_t *laci_json_number(double value);

/** Returns a JSON integer, or a text for a number beyond int64, so that readers lose no digit. */
json_t *laci_json_uint64(uint64_t value);

/** Flags of jansson for laci_json_finish. LACI_JSON_REPORT: indented by two spaces, numbers with up
 * to `digits` digits. LACI_JSON_ASCII: the format of the permutation file. */
#define LACI_JSON_REPORT(digits) (JSON_INDENT(2) | JSON_REAL_PRECISION(digits))
#define LACI_JSON_ASCII (JSON_INDENT(1) | JSON_ENSURE_ASCII)

/** Writes root as text with a final line break; free *text with laci_free. Takes ownership of root
 * and clears the writer. Fails LAC_NO_MEMORY, naming `what`; *text is then NULL. */
LAC_MUST_CHECK lac_status laci_json_finish(laci_json_writer *w, json_t *root, size_t flags,
                                           const char *what, char **text, lac_error *err);

/** Parses `text`; free *root with json_decref. Messages call the text `name`, and `what` says what
 * it should be. Fails LAC_BAD_FILE where it is no JSON, or a key occurs twice; LAC_NO_MEMORY. *root
 * is then NULL. */
LAC_MUST_CHECK lac_status laci_json_read(const char *name, const char *what, const char *text,
                                         json_t **root, lac_error *err);

#endif
