/* SPDX-License-Identifier: Apache-2.0
 * Estimates the largest width that a text may have when it is drawn.
 *
 * A drawing may be viewed on a machine with other fonts. DejaVu Sans, the usual font on Linux, is
 * the widest of the fonts that drawings name (LACI_FONTS). If a text fits with it, it fits with all
 * of them. */
#ifndef LACI_REPORT_TEXT_WIDTH_H
#define LACI_REPORT_TEXT_WIDTH_H

#include <stdbool.h>

#define LACI_FONTS "DejaVu Sans,Verdana,Arial,sans-serif"

/** Returns the width of text in the unit of `size`, which is the height of the font. text: UTF-8;
 * invalid bytes count as U+FFFD. */
double laci_text_width(const char *text, double size, bool bold);

#endif
