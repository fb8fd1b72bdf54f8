/* SPDX-License-Identifier: Apache-2.0
 * Runs the drawing program, lacuna-draw, which calls graphviz: finds it, starts it, and reports how
 * it ended.
 *
 * The library may be part of any program, so it cannot start its own program once more to draw.
 * lacuna-draw is a file of the installation. It is searched near the code that is running
 * (base/installed.h), then in the folder of the installation. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* secure_getenv */
#endif
#include "report/render.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/installed.h"
#include "base/child.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/to_int.h"
#include "report/label.h"

#define PROGRAM "libexec/lacuna/lacuna-draw"

enum { SECONDS = 60, BYTES_A_SECOND = 1 << 12, MOST_SECONDS = 3600, MOST_BYTES = 1 << 30 };

lac_status laci_picture_format_of_path(const char *path, laci_picture *picture, lac_error *err) {
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

/* ---- Finding the drawing program ---- */

/* Finds the path of the drawing program. Returns false if this build is without graphviz, and no
 * program of another build is installed. */
static bool find_program(char path[PATH_MAX]) {
  const char *named = secure_getenv("LACUNA_DRAW");
  if (named && *named) return snprintf(path, PATH_MAX, "%s", named) > 0;
#ifdef LAC_DRAW
  if (!laci_find_installed_file(PROGRAM, path)) (void)snprintf(path, PATH_MAX, "%s", LAC_DRAW);
  return true;
#else
  return laci_find_installed_file(PROGRAM, path);
#endif
}

/* ---- Drawing ---- */

static lac_status fail_draw_program(const laci_child_result *r, double seconds, lac_error *err) {
  const char *colon = *r->last_message ? ": " : "";
  switch (r->end) {
    case LACI_CHILD_LATE:
      return laci_fail(
          err, LAC_UNSUPPORTED,
          "the drawing: graphviz took longer than %.0f s; a .dot file needs none of it", seconds);
    case LACI_CHILD_KILLED:
      return laci_fail(err, LAC_UNSUPPORTED, "the drawing: graphviz ended by signal %d%s%s",
                       r->code, colon, r->last_message);
    case LACI_CHILD_TOO_MUCH:
      return laci_fail(err, LAC_UNSUPPORTED, "the drawing: it has more than %d MiB; wanted less",
                       MOST_BYTES >> 20);
    default:
      return laci_fail(
          err, LAC_UNSUPPORTED, "the drawing: %s",
          *r->last_message ? r->last_message : "graphviz ended early and gave no reason");
  }
}

/* Takes the drawing out of the program's output: the drawing's size, a line break, and the drawing.
 * If it has that size it is complete, whatever the exit status of the process. */
static lac_status read_picture_from_output(laci_child_result *r, double seconds, char **bytes,
                                           size_t *size_bytes, lac_error *err) {
  size_t size = 0;
  int head = 0;
  bool is_whole = r->output && sscanf(r->output, "%zu%n", &size, &head) == 1 && size > 0 &&
                  r->output[head] == '\n' && r->output_bytes == size + (size_t)head + 1;
  if (!is_whole) return fail_draw_program(r, seconds, err);
  memmove(r->output, r->output + head + 1, size);
  *bytes = r->output;
  *size_bytes = size;
  r->output = NULL;
  return LAC_OK;
}

static lac_status run_draw_program(const laci_label *graph, laci_picture picture, double seconds,
                                   char **bytes, size_t *size_bytes, lac_error *err) {
  char formats[][4] = {
      [LACI_PICTURE_SVG] = "svg", [LACI_PICTURE_PDF] = "pdf", [LACI_PICTURE_PNG] = "png"};
  char program[PATH_MAX], limit[32];
  char *const command[] = {program, formats[picture], limit, NULL};
  if (!find_program(program)) {
    return laci_fail(err, LAC_UNSUPPORTED,
                     "the drawing: this Lacuna was built without graphviz; a .dot file needs none");
  }
  /* the drawing program ends itself after `limit` seconds, in case this process is killed before */
  (void)snprintf(limit, sizeof limit, "%d",
                 (int)laci_clamp_to_range(seconds, 0, INT32_MAX - 2) + 2);
  laci_child_job job = {.command = command,
                        .input = graph->text,
                        .input_bytes = graph->n,
                        .seconds = seconds,
                        .most_bytes = MOST_BYTES};
  laci_child_result result;
  lac_status st = laci_child_run(&job, &result, err);
  if (st == LAC_INTERRUPTED || st == LAC_NO_MEMORY) return st;
  if (st) return laci_fail_with_prefix(err, st, "the drawing");
  st = read_picture_from_output(&result, seconds, bytes, size_bytes, err);
  laci_free(result.output);
  return st;
}

lac_status laci_render_within(const laci_label *graph, laci_picture picture, double seconds,
                              char **bytes, size_t *size_bytes, lac_error *err) {
  *bytes = NULL;
  *size_bytes = 0;
  if (graph->failed || !graph->text) return laci_fail_memory(err, "a drawing");
  if (picture != LACI_PICTURE_DOT)
    return run_draw_program(graph, picture, seconds, bytes, size_bytes, err);
  *bytes = laci_alloc(graph->n, 1);
  if (!*bytes) return laci_fail_memory(err, "a drawing");
  memcpy(*bytes, graph->text, graph->n);
  *size_bytes = graph->n;
  return LAC_OK;
}

lac_status laci_render(const laci_label *graph, laci_picture picture, char **bytes,
                       size_t *size_bytes, lac_error *err) {
  double seconds = SECONDS + (double)(graph->n / BYTES_A_SECOND);
  if (seconds > MOST_SECONDS) seconds = MOST_SECONDS;
  return laci_render_within(graph, picture, seconds, bytes, size_bytes, err);
}
