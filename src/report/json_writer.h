/* SPDX-License-Identifier: Apache-2.0
 * Writing JSON through jansson, with one check at the end.
 *
 * jansson's *_new functions take what they are given, also when it is NULL, and then fail
 * themselves; so a missing piece anywhere shows in the next laci_json_add, and one flag tells at
 * the end whether memory sufficed. */
#ifndef LACI_REPORT_JSON_WRITER_H
#define LACI_REPORT_JSON_WRITER_H

#include <jansson.h>
#include <stdbool.h>

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

/** The text of root with a line break at the end, indented by two, numbers with so many digits;
 * laci_free it. Takes root and clears the writer. Fails LAC_NO_MEMORY, naming `what`; *text is then
 * NULL. */
LAC_MUST_CHECK lac_status laci_json_finish(laci_json_writer *w, json_t *root, int digits,
                                           const char *what, char **text, lac_error *err);

#endif
