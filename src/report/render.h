/* SPDX-License-Identifier: Apache-2.0
 * A graph in graphviz' language as the bytes of a drawing.
 *
 * graphviz works in a process of its own, the program lacuna-draw: it ends its process where memory
 * is short, hangs where threads cannot be had, and prints; none of that is the caller's. */
#ifndef LACI_REPORT_RENDER_H
#define LACI_REPORT_RENDER_H

#include <stddef.h>

#include "lacuna/status.h"

typedef struct laci_label laci_label;

typedef enum laci_picture {
  LACI_PICTURE_SVG,
  LACI_PICTURE_PDF,
  LACI_PICTURE_PNG,
  LACI_PICTURE_DOT
} laci_picture;

/** The format that the ending of path names. Fails LAC_BAD_ARGUMENT for another ending. */
LAC_MUST_CHECK lac_status laci_picture_of(const char *path, laci_picture *picture, lac_error *err);

/** Lays the graph out (not for DOT, which is the text itself) and draws it. A page is as large as
 * the drawing, scaled down where a format has a limit. *bytes: freed by the caller with laci_free.
 *
 * Fails LAC_UNSUPPORTED where graphviz cannot draw it, is not built in, ends badly (killed, out of
 * memory) or takes too long: a minute, and a second more for every 4 KiB of text; LAC_NOT_FOUND
 * where lacuna-draw is not installed, LAC_IO where no process can be had, LAC_INTERRUPTED,
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_render(const laci_label *graph, laci_picture picture, char **bytes,
                                      size_t *size_bytes, lac_error *err);

/** The same with a limit of its own, in seconds. */
LAC_MUST_CHECK lac_status laci_render_within(const laci_label *graph, laci_picture picture,
                                             double seconds, char **bytes, size_t *size_bytes,
                                             lac_error *err);

#endif
