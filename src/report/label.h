/* SPDX-License-Identifier: Apache-2.0
 * Writing graphviz' language and its HTML-like labels: a growing text, and texts of any bytes
 * escaped, wrapped and measured into it.
 *
 * Failure is kept, not returned: write all, then look at `failed` once. */
#ifndef LACI_REPORT_LABEL_H
#define LACI_REPORT_LABEL_H

#include "base/memory.h"
#include "lacuna/status.h"

/** Zero-initialised is empty. text is NULL until something was written; free with laci_label_clear.
 */
typedef struct laci_label {
  char *text;
  size_t n, capacity;
  bool failed; /* no memory */
  /* How wide the texts are where they are drawn at the widest (text_width.h), in points. */
  double size; /* of the font of what comes now; 0: as large as most */
  bool bold;
  double line, widest; /* the line so far, the longest one so far */
} laci_label;

void laci_label_clear(laci_label *label);
/** Empty again, but keeps its memory. */
void laci_label_reset(laci_label *label);

/** Markup as it is, printf-style. */
void laci_label_markup(laci_label *label, const char *format, ...) LAC_PRINTF(2, 3);
/** All that was written into another label, as it is. */
void laci_label_add(laci_label *label, const laci_label *other);

/** The font that the markup asks for, and a line that begins: for measuring only. */
void laci_label_font(laci_label *label, double size, bool bold);
void laci_label_line(laci_label *label);

/** text, escaped; what is no valid UTF-8 becomes U+FFFD, control characters a blank. Lines end at
 * '\n' and before they get longer than `width` characters, after a blank or a separator of names
 * where there is one. Lines are parted by <BR/>; after the 64th there is nothing but "...". */
void laci_label_text(laci_label *label, const char *text, size_t width);

#endif
