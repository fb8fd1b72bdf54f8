/* SPDX-License-Identifier: Apache-2.0
 * lacuna-draw FORMAT SECONDS: reads a graph in graphviz' language from standard input and writes a
 * drawing (svg, pdf, png) to standard output: its size in bytes, a line break, and the bytes.
 *
 * The library starts this program for every drawing, so that graphviz does not run in the caller's
 * process: graphviz ends its process if memory is short, and glib, which graphviz uses, prints
 * messages. A failure is reported as one line on standard error. report/render.c is the caller.
 *
 * Drawings of networks are tall, and formats have limits: Acrobat shows PDF pages of up to 14400
 * points, cairo draws bitmaps of up to 32767 pixels a side. So the scale is chosen after the
 * layout, when the size is known.
 *
 * With LAC_DRAW_SVG_ALONE (the Python wheel), the parts of graphviz that write SVG are linked. They
 * need no file of plug-ins, and none of the libraries that PDF and PNG take. */
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <graphviz/gvc.h>

#include "columns.h"

enum {
  PNG_DPI = 96,
  PNG_MAX_SIDE = 32000,
  PNG_MAX_PIXELS = 48 * 1000 * 1000,
  PDF_MAX_POINTS = 14400,
  PDF_MARGIN = 36
};

/* A drawing is scaled to fit a page of A4 if the scale is at least this, so that its text has 3.5
 * points or more. */
static const double LEAST_PAGE_SCALE = 0.35;

typedef struct format {
  const char *name, *renderer;
} format;

static const format formats[] = {{"svg", "svg"}, {"pdf", "pdf"}, {"png", "png:cairo"}};

#ifdef LAC_DRAW_SVG_ALONE
enum { SVG_ALONE = true };
extern gvplugin_library_t gvplugin_core_LTX_library, gvplugin_dot_layout_LTX_library;
static const lt_symlist_t parts[] = {
    {"gvplugin_core_LTX_library", &gvplugin_core_LTX_library},
    {"gvplugin_dot_layout_LTX_library", &gvplugin_dot_layout_LTX_library},
    {NULL, NULL}};

static GVC_t *open_graphviz(void) { return gvContextPlugins(parts, false); }
#else
enum { SVG_ALONE = false };

static GVC_t *open_graphviz(void) { return gvContext(); }
#endif

/* The messages that graphviz has sent so far. graphviz sends one message in several parts. */
static char said[512];

static int collect_error_message(char *part) {
  size_t used = strlen(said);
  for (; *part && used + 1 < sizeof said; part++) said[used++] = *part == '\n' ? ' ' : *part;
  said[used] = '\0';
  return 0;
}

/* Prints the failure as one line and ends the process at once, so that glib cannot print anything
 * after it. */
static void fail_and_exit(const char *what) {
  fprintf(stderr, "graphviz could not %s: %s\n", what, *said ? said : "it gives no reason");
  (void)fflush(stderr);
  _exit(EXIT_FAILURE);
}

/* Makes this process end when its parent process dies, or after `seconds`. */
static void end_when_parent_dies(unsigned seconds) {
  pid_t parent = getppid();
#ifdef __linux__
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  if (getppid() != parent) _exit(EXIT_FAILURE);
  (void)alarm(seconds);
}

/* Returns the drawing's size in points, with a margin of 4 points on each side. */
static void measure_drawing(Agraph_t *graph, double *width, double *height) {
  *width = GD_bb(graph).UR.x - GD_bb(graph).LL.x + 8;
  *height = GD_bb(graph).UR.y - GD_bb(graph).LL.y + 8;
}

static void scale_to_format(Agraph_t *graph, const char *name) {
  double width, height;
  measure_drawing(graph, &width, &height);
  double longest = fmax(width, height), page = columns_page_scale(width, height);
  double capacity = PDF_MAX_POINTS - 2 * PDF_MARGIN - 1;
  if (strcmp(name, "pdf") == 0 && longest > capacity) {
    /* Graphviz adds margins and rounds sizes to whole points, so the scale aims one point below the
     * limit. */
    double scale = capacity / longest;
    GD_drawing(graph)->size.x = width * scale;
    GD_drawing(graph)->size.y = height * scale;
  }
  if (strcmp(name, "pdf") == 0 && page < 1 && page >= LEAST_PAGE_SCALE) {
    GD_drawing(graph)->size.x = width * page;
    GD_drawing(graph)->size.y = height * page;
  }
  if (strcmp(name, "png") == 0) {
    double by_side = PNG_MAX_SIDE * 72.0 / longest;
    double by_area = sqrt(PNG_MAX_PIXELS / (width * height)) * 72.0;
    GD_drawing(graph)->dpi = fmin(PNG_DPI, fmin(by_side, by_area));
  }
}

static void draw_graph(const format *as) {
  char *drawn = NULL;
  unsigned int n = 0;
  GVC_t *gvc = open_graphviz();
  if (!gvc) fail_and_exit("begin");
  Agraph_t *graph = agread(stdin, NULL);
  if (!graph) fail_and_exit("read the graph");
  if (gvLayout(gvc, graph, "dot")) fail_and_exit("lay out the graph");
  if (strcmp(as->name, "svg") != 0) columns_arrange(graph);
  scale_to_format(graph, as->name);
  if (gvRenderData(gvc, graph, as->renderer, &drawn, &n) || !drawn || n == 0)
    fail_and_exit("draw the graph");
  if (printf("%u\n", n) < 0 || fwrite(drawn, 1, n, stdout) != n || fflush(stdout))
    fail_and_exit("hand over the picture");
}

int main(int argc, char **argv) {
  const format *as = NULL;
  for (size_t at = 0; at < sizeof formats / sizeof *formats && argc == 3; at++) {
    if (strcmp(argv[1], formats[at].name) == 0) as = &formats[at];
  }
  int seconds = argc == 3 ? atoi(argv[2]) : 0;
  if (!as || seconds <= 0) {
    fputs("usage: lacuna-draw svg|pdf|png SECONDS < GRAPH; Lacuna's library starts it\n", stderr);
    return 2;
  }
  if (SVG_ALONE && as != formats) {
    fprintf(stderr, "this Lacuna draws .svg alone, not .%s; a browser prints it as one\n",
            as->name);
    return EXIT_FAILURE;
  }
  end_when_parent_dies((unsigned)seconds);
  agseterr(AGERR);
  agseterrf(collect_error_message);
  draw_graph(as);
  _exit(EXIT_SUCCESS); /* ending the process frees graphviz' memory faster than graphviz does */
}
