/* SPDX-License-Identifier: Apache-2.0
 * How wide a text is drawn, at the widest.
 *
 * A drawing may be read where other fonts are installed than here. Of those that drawings ask for
 * (LACI_FONTS), DejaVu Sans is the widest, and it is what Linux has; where it fits, all of them
 * fit. */
#ifndef LACI_REPORT_TEXT_WIDTH_H
#define LACI_REPORT_TEXT_WIDTH_H

#include <stdbool.h>

#define LACI_FONTS "DejaVu Sans,Verdana,Arial,sans-serif"

/** In the unit of `size`, the height of the font. text: UTF-8; what is none counts as U+FFFD. */
double laci_text_width(const char *text, double size, bool bold);

#endif
