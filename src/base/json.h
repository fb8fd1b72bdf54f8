/* SPDX-License-Identifier: Apache-2.0
 * Writing and reading JSON through jansson, with one check at the end.
 *
 * jansson's *_new functions take what they are given, also when it is NULL, and then fail
 * themselves; so a missing value anywhere shows in the next laci_json_add, and one flag tells at
 * the end whether memory sufficed. Every text that the program writes by jansson is made here, so
 * that no part of one can be lost in silence. */
#ifndef LACI_BASE_JSON_H
#define LACI_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "lacuna/status.h"

/** Begin with {.whole = true}. */
typedef struct laci_json_writer {
  laci_arena arena; /* repaired texts */
  bool whole;       /* nothing failed so far */
} laci_json_writer;

/** Takes value, which may be NULL. */
void laci_json_add(laci_json_writer *w, json_t *object, const char *key, json_t *value);
void laci_json_append(laci_json_writer *w, json_t *array, json_t *value);

/** null for NULL; what is no UTF-8 is repaired. */
json_t *laci_json_text(laci_json_writer *w, const char *text);

/** null where the value is not finite: JSON has no word for it. */
json_t *laci_json_number(double value);

/** JSON's readers hold integers as int64: a larger one becomes a text, so that no digit is lost. */
json_t *laci_json_uint64(uint64_t value);

/** How a text looks, jansson's flags: indented by two, numbers with so many digits; and the
 * permutation file's. */
#define LACI_JSON_REPORT(digits) (JSON_INDENT(2) | JSON_REAL_PRECISION(digits))
#define LACI_JSON_ASCII (JSON_INDENT(1) | JSON_ENSURE_ASCII)

/** The text of root with a line break at the end; laci_free it. Takes root and clears the writer.
 * Fails LAC_NO_MEMORY, naming `what`; *text is then NULL. */
LAC_MUST_CHECK lac_status laci_json_finish(laci_json_writer *w, json_t *root, size_t flags,
                                           const char *what, char **text, lac_error *err);

/** The value that `text` holds; json_decref it. Messages call it `name`, which was to be `what`.
 * Fails LAC_BAD_FILE where it is no JSON, or a key is there twice; LAC_NO_MEMORY. *root is then
 * NULL. */
LAC_MUST_CHECK lac_status laci_json_read(const char *name, const char *what, const char *text,
                                         json_t **root, lac_error *err);

#endif
