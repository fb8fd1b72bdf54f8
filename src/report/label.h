/* SPDX-License-Identifier: Apache-2.0
 * Writes text in graphviz' language and its HTML-like labels. Texts of any bytes are escaped,
 * wrapped and measured when they are added.
 *
 * Functions return no status: write everything, and then check `failed` once. */
#ifndef LACI_REPORT_LABEL_H
#define LACI_REPORT_LABEL_H

#include "base/memory.h"
#include "lacuna/status.h"

/** A growing text; zero-initialized it is empty. text is NULL until something is written. Free it
 * with laci_label_clear. */
typedef struct laci_label {
  char *text;
  size_t n, capacity;
  bool failed; /* true: memory ran out, and the text is incomplete */
  /* The fields below measure texts in points, as drawn with the widest font (text_width.h). */
  double size; /* font size of the next text; 0: the usual size */
  bool bold;
  double line, widest; /* line: width of the present line. widest: width of the widest line so
                          far */
} laci_label;

void laci_label_clear(laci_label *label);
/** Makes the label's text empty, but keeps its memory. */
void laci_label_reset(laci_label *label);

/** Appends graphviz' markup without escaping, printf-style. */
void laci_label_add_markup(laci_label *label, const char *format, ...) LAC_PRINTF(2, 3);
/** Appends the text of another label without escaping. */
void laci_label_append_label(laci_label *label, const laci_label *other);

/** Begin a part of a label whose texts are measured. laci_label_set_font: with another font.
 * laci_label_begin_line: on a new line. Both only measure: the caller must write the markup for
 * them. */
void laci_label_set_font(laci_label *label, double size, bool bold);
void laci_label_begin_line(laci_label *label);

/** Appends text, escaped. Invalid UTF-8 becomes U+FFFD, a control character a blank. Lines end at
 * '\n', and are wrapped to `width` characters, if possible after a blank or a separator in names.
 * <BR/> separates lines; after the 64th line only "..." follows. */
void laci_label_add_text(laci_label *label, const char *text, size_t width);

#endif
