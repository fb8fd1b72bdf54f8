/* SPDX-License-Identifier: Apache-2.0
 * Draws a graph that is given in graphviz' language.
 *
 * graphviz runs in a separate process, the program lacuna-draw. It would end its process if memory
 * is short, hang if no thread can be started, and print messages. */
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

/** Sets *picture to the format that the ending of path means. Fails with LAC_BAD_ARGUMENT for an
 * unknown ending. */
LAC_MUST_CHECK lac_status laci_picture_format_of_path(const char *path, laci_picture *picture,
                                                      lac_error *err);

/** Lays the graph out and draws it; for DOT, the result is the graph's text itself. The page is as
 * large as the drawing, which is scaled down if the format limits sizes. The caller frees *bytes
 * with laci_free.
 *
 * Fails with LAC_UNSUPPORTED if graphviz cannot draw it, is not built in, crashes (killed, out of
 * memory) or takes too long (a minute, plus a second for every 4 KiB of text); with LAC_NOT_FOUND
 * if lacuna-draw is not installed, or with LAC_IO if no process can be started. Also with
 * LAC_INTERRUPTED or LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_render(const laci_label *graph, laci_picture picture, char **bytes,
                                      size_t *size_bytes, lac_error *err);

/** Does the same as laci_render, with a time limit of `seconds`. */
LAC_MUST_CHECK lac_status laci_render_within(const laci_label *graph, laci_picture picture,
                                             double seconds, char **bytes, size_t *size_bytes,
                                             lac_error *err);

#endif
