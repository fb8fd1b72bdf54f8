/* SPDX-License-Identifier: Apache-2.0
 * Writes a drawing as SVG, a growing text. Texts of any bytes are escaped and shortened when they
 * are added.
 *
 * Only laci_svg_end returns a status, which includes all earlier failures. */
#ifndef LACI_REPORT_SVG_H
#define LACI_REPORT_SVG_H

#include <stdbool.h>
#include <stddef.h>

#include "lacuna/status.h"

/** A growing SVG text; zero-initialized it is empty. After a failure nothing is appended any more.
 */
typedef struct laci_svg {
  char *text;
  size_t n, capacity;
  bool failed; /* true: memory ran out, and the text is incomplete */
} laci_svg;

/** Begins a drawing with a white background. width, height: its size in pixels. */
void laci_svg_begin(laci_svg *svg, int width, double height);
/** Ends the drawing. *text is the complete SVG, which the caller frees with laci_free. Fails with
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_svg_end(laci_svg *svg, char **text, size_t *size_bytes,
                                       lac_error *err);

/** Appends SVG markup without escaping, printf-style, at most 511 bytes. */
void laci_svg_append(laci_svg *svg, const char *format, ...) LAC_PRINTF(2, 3);
/** Appends everything that was written to the drawing `other`. */
void laci_svg_append_svg(laci_svg *svg, const laci_svg *other);
/** Appends text to the content of an element, escaped. Characters that XML does not allow become a
 * blank or U+FFFD. */
void laci_svg_append_text(laci_svg *svg, const char *text);
/** Appends text that is at most `width` pixels wide; the middle of a longer text is left out. size,
 * bold: its font. */
void laci_svg_append_shortened_text(laci_svg *svg, const char *text, double size, bool bold,
                                    double width);

#endif
