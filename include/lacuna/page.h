/* SPDX-License-Identifier: Apache-2.0
 * One page to show: a report as a single HTML file, which needs no network and no other file.
 *
 * The page states the result in one sentence. It has the layers in a table that sorts and filters,
 * and the drawing of the network, coloured by any figure. The curves of a training, warnings, and
 * the report itself as JSON follow. Everything it says comes from that report.
 * docs/reference/page.md describes it. */
#ifndef LACUNA_PAGE_H
#define LACUNA_PAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lac_context lac_context; /* lacuna/context.h */
typedef struct lac_model lac_model;     /* lacuna/model.h */
typedef struct lac_report lac_report;   /* lacuna/report.h */

/** What a page shows. All texts are UTF-8; those of JSON are checked. */
typedef struct lac_page {
  size_t size;         /* sizeof of this struct, set by LAC_SIZED */
  const char *report;  /* a report as JSON, such as lac_bench_json makes; NULL: that of `layers` */
  const char *command; /* the command that was run; NULL: not shown */
  const char *log;     /* a JSON array of lines as in log.jsonl, for curves; NULL: none */
  const char *const *warnings; /* [n_warnings] warnings that the page lists */
  int n_warnings;
  const lac_model *model;   /* the network to draw; NULL: no drawing */
  const lac_report *layers; /* a report of `model`, of lac_inspect say, for the drawing and for
                               figures of layers; NULL: no drawing */
} lac_page;

/** Writes the page to path, wholly or not at all. force: replace an existing file. Where the
 * network cannot be drawn (graphviz is missing, or fails), the page says why and lists the nodes.
 * The same page gives the same bytes. Fails LAC_BAD_ARGUMENT (neither report nor layers),
 * LAC_BAD_FILE (report or log is no JSON), LAC_EXISTS, LAC_IO, LAC_NO_MEMORY, LAC_INTERRUPTED (by
 * the context; NULL: the process's). */
LAC_API LAC_MUST_CHECK lac_status lac_page_write(const lac_page *page, const char *path, bool force,
                                                 lac_context *context, lac_error *err);

#ifdef __cplusplus
}
#endif
#endif
