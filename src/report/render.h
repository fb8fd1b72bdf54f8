/* SPDX-License-Identifier: Apache-2.0
 * A finished graphviz graph as the bytes of a picture. */
#ifndef LACI_REPORT_RENDER_H
#define LACI_REPORT_RENDER_H

#include <stddef.h>

#include <graphviz/cgraph.h>

#include "lacuna/status.h"

typedef enum laci_picture {
  LACI_PICTURE_SVG,
  LACI_PICTURE_PDF,
  LACI_PICTURE_PNG,
  LACI_PICTURE_DOT
} laci_picture;

/** The format that the ending of path names. Fails LAC_BAD_ARGUMENT for another ending. */
LAC_MUST_CHECK lac_status laci_picture_of(const char *path, laci_picture *picture, lac_error *err);

/** graphviz keeps state of its own: whoever builds and renders a graph does it between these. */
void laci_render_lock(void);
void laci_render_unlock(void);

/** Lays the graph out (not for DOT, which is the graph's own text) and draws it. A page is as large
 * as the drawing, scaled down where a format has a limit. *bytes: freed by the caller with
 * laci_free. Fails LAC_UNSUPPORTED where graphviz was installed without what the format needs, with
 * graphviz' own words. Under the lock. */
LAC_MUST_CHECK lac_status laci_render(Agraph_t *graph, laci_picture picture, char **bytes,
                                      size_t *size_bytes, lac_error *err);

#endif
