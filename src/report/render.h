/* SPDX-License-Identifier: Apache-2.0
 * Draws a graph in graphviz' language.
 *
 * graphviz runs in a separate process, the program lacuna-draw, since it ends its process if memory
 * is short, hangs if no thread can be started, and prints messages. */
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

/** Returns the format for the ending of path. Fails LAC_BAD_ARGUMENT for an unknown ending. */
LAC_MUST_CHECK lac_status laci_picture_of_path(const char *path, laci_picture *picture,
                                               lac_error *err);

/** Lays the graph out (not for DOT, which is the text itself) and draws it. The page is as large as
 * the drawing, which is scaled down if the format limits sizes. The caller frees *bytes with
 * laci_free.
 *
 * Fails LAC_UNSUPPORTED if graphviz cannot draw it, is not built in, crashes (killed, out of
 * memory) or takes too long (a minute, plus a second for every 4 KiB of text); LAC_NOT_FOUND if
 * lacuna-draw is not installed, LAC_IO if no process can be started, LAC_INTERRUPTED,
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_render(const laci_label *graph, laci_picture picture, char **bytes,
                                      size_t *size_bytes, lac_error *err);

/** Does the same as laci_render, with a time limit of `seconds`. */
LAC_MUST_CHECK lac_status laci_render_within(const laci_label *graph, laci_picture picture,
                                             double seconds, char **bytes, size_t *size_bytes,
                                             lac_error *err);

#endif
