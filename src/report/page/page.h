/* SPDX-License-Identifier: Apache-2.0
 * Writes a report as an HTML page: a template, and data between its parts. The template's files are
 * in this folder (head.html, page.css, body.html and the scripts), and the library contains their
 * bytes.
 *
 * Data are JSON in elements that browsers do not run. They are escaped so that no name of a model
 * can end such an element. The scripts show texts as texts, never as markup. The page forbids
 * itself any access to a network. */
#ifndef LACI_REPORT_PAGE_H
#define LACI_REPORT_PAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "lacuna/status.h"

typedef struct laci_graph laci_graph;
typedef struct laci_plot laci_plot;

/** The contents of a page. A JSON text may be NULL: the page then lacks that part. */
typedef struct laci_page {
  const char *title;  /* title of the browser's window */
  const char *report; /* JSON: report of the command that was run */
  const char *about;  /* JSON: what the page says about itself, from laci_page_about_json */
  const char *layers; /* JSON: report of the network's layers, if `report` is about something
                         else */
  const char *log;    /* JSON: array of the events of a training, for the curves */
  const char *graph;  /* JSON: the network's nodes, from laci_page_graph_json */
  const char *svg;    /* [svg_bytes] the drawing, made by laci_plot_draw with for_page set; NULL:
                         there is none */
  size_t svg_bytes;
} laci_page;

/** What the page says about itself. */
typedef struct laci_page_about {
  const char *command;         /* the command line that was run; NULL: not known */
  const char *const *warnings; /* [n_warnings] texts of warnings */
  int n_warnings;
  const char *no_drawing; /* why the page has no drawing; NULL: it has one, or none was wanted */
} laci_page_about;

/** Returns the JSON text for laci_page.about. The caller frees *text with laci_free. Fails with
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_page_about_json(const laci_page_about *about, char **text,
                                               lac_error *err);

/** Returns the network's nodes as JSON: their boxes in the drawing, names, operators and roles. The
 * caller frees *text with laci_free. Fails with LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_page_graph_json(const laci_graph *graph, const laci_plot *plot,
                                               char **text, lac_error *err);

/** Writes the page to path, atomically. force: replace an existing file. Fails with LAC_EXISTS,
 * LAC_IO or LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_page_write(const laci_page *page, const char *path, bool force,
                                          lac_error *err);

#endif
