/* SPDX-License-Identifier: Apache-2.0
 * Writes a report as a page: makes its parts, and hands them to report/page. */
#include "lacuna/page.h"

#include <stdio.h>
#include <string.h>

#include "api/model/model_in.h"
#include "api/model/structs.h"
#include "api/prune/plot_in.h"
#include "base/error.h"
#include "base/json.h"
#include "lacuna/report.h"
#include "report/json.h"
#include "report/page/page.h"

/* The texts of a page, which it owns. */
typedef struct parts {
  char *report, *layers, *about, *graph, *svg;
  size_t svg_bytes;
  char title[512];
  lac_error
      no_drawing; /* its text says why there is none; empty: there is one, or none is wanted */
} parts;

static void clear_parts(parts *p) {
  laci_free(p->report);
  laci_free(p->layers);
  laci_free(p->about);
  laci_free(p->graph);
  laci_free(p->svg);
}

static lac_status check_json(const char *what, const char *text, lac_error *err) {
  json_t *root = NULL;
  if (!text) return LAC_OK;
  lac_status st = laci_json_read(what, "JSON", text, &root, err);
  json_decref(root);
  return st;
}

/* Writes the title of the window: "lacuna prune: net.onnx". */
static lac_status make_title(const char *report, char *title, size_t size, lac_error *err) {
  json_t *root = NULL;
  lac_status st = laci_json_read("the report", "JSON", report, &root, err);
  if (st) return st;
  const char *verb = json_string_value(json_object_get(root, "verb"));
  const char *model = json_string_value(json_object_get(root, "model"));
  if (!model) model = json_string_value(json_object_get(root, "arch"));
  const char *slash = model ? strrchr(model, '/') : NULL;
  const char *name = slash ? slash + 1 : model ? model : "";
  (void)snprintf(title, size, "lacuna %s: %.400s", verb ? verb : "report", name);
  json_decref(root);
  return LAC_OK;
}

/* Is this a failure of the drawing alone, without which the page is still of use? */
static bool is_drawing_failure(lac_status st) {
  return st == LAC_UNSUPPORTED || st == LAC_NOT_FOUND || st == LAC_IO;
}

static lac_status draw_network(const lac_page *page, parts *p, lac_error *err) {
  laci_report_plot made;
  if (!page->model || !page->layers) return LAC_OK;
  const laci_graph *graph = page->model->graph;
  lac_status st = laci_report_plot_make(page->model, page->layers, &made, err);
  if (!st) st = laci_page_graph_json(graph, &made.plot, &p->graph, err);
  if (!st) {
    made.plot.for_page = true;
    st = laci_plot_draw(graph, &made.plot, "page.svg", &p->svg, &p->svg_bytes, &p->no_drawing);
    if (is_drawing_failure(st)) st = LAC_OK;
    else if (st && err) *err = p->no_drawing;
  }
  laci_report_plot_clear(&made);
  return st;
}

static lac_status write_page(const lac_page *page, const char *path, bool force, parts *p,
                             lac_error *err) {
  const char *report = page->report;
  lac_status st = check_json("the log", page->log, err);
  if (!st && page->layers)
    st = laci_report_json(page->layers, report ? &p->layers : &p->report, err);
  if (!report) report = p->report;
  if (!st) st = make_title(report, p->title, sizeof p->title, err);
  if (!st) st = draw_network(page, p, err);
  const laci_page_about about = {.command = page->command,
                                 .warnings = page->warnings,
                                 .n_warnings = page->n_warnings,
                                 .no_drawing = p->no_drawing.text[0] ? p->no_drawing.text : NULL};
  if (!st) st = laci_page_about_json(&about, &p->about, err);
  const laci_page made = {.title = p->title,
                          .report = report,
                          .about = p->about,
                          .layers = p->layers,
                          .log = page->log,
                          .graph = p->graph,
                          .svg = p->svg,
                          .svg_bytes = p->svg_bytes};
  return st ? st : laci_page_write(&made, path, force, err);
}

lac_status lac_page_write(const lac_page *page, const char *path, bool force, lac_context *context,
                          lac_error *err) {
  lac_page own;
  parts p = {.report = NULL};
  lac_status st = LACI_CHECK_GIVEN(err, {"page", page}, {"path", path});
  if (!st) st = laci_take_page(page, &own, err);
  if (!st && !own.report && !own.layers)
    st = laci_fail(err, LAC_BAD_ARGUMENT, "%s: a page needs a report", path);
  if (st) return st;
  lac_context *before = laci_call_enter_context(context);
  st = write_page(&own, path, force, &p, err);
  laci_call_leave_context(before);
  clear_parts(&p);
  return st;
}
