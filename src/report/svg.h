/* SPDX-License-Identifier: Apache-2.0
 * Writing a drawing as SVG: a growing text, and texts of any bytes escaped and shortened into it.
 *
 * Failure is kept, not returned: write all, then end it. */
#ifndef LACI_REPORT_SVG_H
#define LACI_REPORT_SVG_H

#include <stdbool.h>
#include <stddef.h>

#include "lacuna/status.h"

/** Zero-initialised is empty; after a failure it stays as it is. */
typedef struct laci_svg {
  char *text;
  size_t n, capacity;
  bool failed; /* no memory */
} laci_svg;

/** Opens the drawing of that size in pixels, on white. */
void laci_svg_begin(laci_svg *svg, int width, double height);
/** Closes it. *text: the whole, the caller's (laci_free). Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_svg_end(laci_svg *svg, char **text, size_t *size_bytes,
                                       lac_error *err);

/** Markup as it is, printf-style, 511 bytes at most. */
void laci_svg_put(laci_svg *svg, const char *format, ...) LAC_PRINTF(2, 3);
/** All that was written into another one. */
void laci_svg_add(laci_svg *svg, const laci_svg *other);
/** Text inside an element: what XML cannot hold is a blank or U+FFFD. */
void laci_svg_text(laci_svg *svg, const char *text);
/** The same in at most `width` pixels: the middle of a longer one is left out. */
void laci_svg_short(laci_svg *svg, const char *text, double size, bool bold, double width);

#endif
