/* SPDX-License-Identifier: Apache-2.0
 * Layout and drawing through libgvc.
 *
 * Drawings of networks are tall, and formats have limits: Acrobat shows PDF pages of up to 14400
 * points, cairo draws bitmaps of up to 32767 pixels a side. So the scale is chosen after the
 * layout, when the size is known. */
#include "report/render.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <graphviz/gvc.h>

#include "base/error.h"
#include "base/memory.h"

enum {
  PNG_DPI = 96,
  PNG_MAX_SIDE = 32000,
  PNG_MAX_PIXELS = 48 * 1000 * 1000,
  PDF_MAX_POINTS = 14400,
  PDF_MARGIN = 36
};

static pthread_mutex_t graphviz = PTHREAD_MUTEX_INITIALIZER;

void laci_render_lock(void) { (void)pthread_mutex_lock(&graphviz); }

void laci_render_unlock(void) { (void)pthread_mutex_unlock(&graphviz); }

lac_status laci_picture_of(const char *path, laci_picture *picture, lac_error *err) {
  static const char *const endings[] = {".svg", ".pdf", ".png", ".dot"};
  const char *dot = strrchr(path, '.');
  for (int i = 0; dot && i < 4; i++) {
    if (strcasecmp(dot, endings[i]) == 0) {
      *picture = (laci_picture)i;
      return LAC_OK;
    }
  }
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s: a plot ends in .svg, .pdf, .png or .dot", path);
}

/* What graphviz said while we worked. It hands over its messages in pieces, through a process-wide
 * function. */
static char said[512];

static int hear(char *piece) {
  size_t used = strlen(said);
  for (; *piece && used + 1 < sizeof said; piece++) said[used++] = *piece == '\n' ? ' ' : *piece;
  said[used] = '\0';
  return 0;
}

static lac_status fail_render(lac_error *err, const char *what) {
  size_t n = strlen(said);
  while (n > 0 && said[n - 1] == ' ') said[--n] = '\0';
  return laci_fail(err, LAC_UNSUPPORTED, "graphviz could not %s: %s", what,
                   n ? said : "it gives no reason");
}

/* The drawing's size with its margin of 4 points a side, in points. */
static void drawing_size(Agraph_t *graph, double *width, double *height) {
  *width = GD_bb(graph).UR.x - GD_bb(graph).LL.x + 8;
  *height = GD_bb(graph).UR.y - GD_bb(graph).LL.y + 8;
}

static void fit_to_format(Agraph_t *graph, laci_picture picture) {
  double width, height;
  drawing_size(graph, &width, &height);
  double longest = fmax(width, height);
  double room = PDF_MAX_POINTS - 2 * PDF_MARGIN - 1;
  if (picture == LACI_PICTURE_PDF && longest > room) {
    /* Margins come on top; sizes are rounded to whole points, so stay a point below. */
    double scale = room / longest;
    GD_drawing(graph)->size.x = width * scale;
    GD_drawing(graph)->size.y = height * scale;
  }
  if (picture == LACI_PICTURE_PNG) {
    double by_side = PNG_MAX_SIDE * 72.0 / longest;
    double by_area = sqrt(PNG_MAX_PIXELS / (width * height)) * 72.0;
    GD_drawing(graph)->dpi = fmin(PNG_DPI, fmin(by_side, by_area));
  }
}

static lac_status copy_bytes(const char *from, size_t n, char **bytes, size_t *size_bytes,
                             lac_error *err) {
  *bytes = laci_alloc(n, 1);
  if (!*bytes) return laci_fail_memory(err, "a picture");
  memcpy(*bytes, from, n);
  *size_bytes = n;
  return LAC_OK;
}

/* The graph as text, for people who lay it out themselves. */
static lac_status write_text(Agraph_t *graph, char **bytes, size_t *size_bytes, lac_error *err) {
  char *text = NULL;
  size_t n = 0;
  FILE *file = open_memstream(&text, &n);
  if (!file) return laci_fail_memory(err, "a picture");
  int failed = agwrite(graph, file);
  if (fclose(file)) failed = 1;
  lac_status st =
      failed ? fail_render(err, "write the graph") : copy_bytes(text, n, bytes, size_bytes, err);
  free(text);
  return st;
}

/* One context serves the whole process and is never freed: the text measuring plug-in remembers its
 * last font by a pointer into the context, and would follow it from the next context on. */
static GVC_t *shared_context(void) {
  static GVC_t *context;
  if (!context) context = gvContext();
  return context;
}

static lac_status draw(Agraph_t *graph, laci_picture picture, char **bytes, size_t *size_bytes,
                       lac_error *err) {
  static const char *const formats[] = {
      [LACI_PICTURE_SVG] = "svg", [LACI_PICTURE_PDF] = "pdf", [LACI_PICTURE_PNG] = "png:cairo"};
  lac_status st = LAC_OK;
  char *drawn = NULL;
  unsigned int n = 0;
  bool laid_out = false;
  GVC_t *gvc = shared_context();
  if (!gvc) return laci_fail_memory(err, "graphviz");
  laid_out = gvLayout(gvc, graph, "dot") == 0;
  if (!laid_out) {
    st = fail_render(err, "lay out the graph");
    goto out;
  }
  fit_to_format(graph, picture);
  if (gvRenderData(gvc, graph, formats[picture], &drawn, &n) || !drawn || n == 0) {
    st = fail_render(err, "draw the graph");
    goto out;
  }
  st = copy_bytes(drawn, n, bytes, size_bytes, err);
out:
  if (drawn) gvFreeRenderData(drawn);
  if (laid_out) gvFreeLayout(gvc, graph);
  return st;
}

lac_status laci_render(Agraph_t *graph, laci_picture picture, char **bytes, size_t *size_bytes,
                       lac_error *err) {
  *bytes = NULL;
  *size_bytes = 0;
  said[0] = '\0';
  agerrlevel_t old_level = agseterr(AGERR);
  agusererrf old_listener = agseterrf(hear);
  lac_status st = picture == LACI_PICTURE_DOT ? write_text(graph, bytes, size_bytes, err)
                                              : draw(graph, picture, bytes, size_bytes, err);
  agseterrf(old_listener);
  agseterr(old_level);
  return st;
}
