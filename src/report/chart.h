/* SPDX-License-Identifier: Apache-2.0
 * A chart of horizontal bars, colored by kind, with a legend. Graphviz lays it out and draws it,
 * like the plots of networks, in the same formats and fonts. */
#ifndef LACI_REPORT_CHART_H
#define LACI_REPORT_CHART_H

#include <stdbool.h>

#include "lacuna/status.h"

typedef struct lac_bench_result lac_bench_result;

typedef struct laci_chart_bar {
  const char *label; /* text to the left of the bar; shortened in the middle if it is long */
  double value;      /* length of the bar, >= 0 */
  double pale_value; /* the value up to which a paler bar continues the bar; 0: there is no paler
                        bar */
  int kind;          /* index in laci_chart.kinds of the kind whose color the bar has; -1: no bar is
                        drawn */
  const char *text;  /* text to the right of the bar */
  const char *note;  /* small text in a separate column */
} laci_chart_bar;

/** A line of the legend. The legend is drawn as a second chart, which shows the share of each kind.
 * */
typedef struct laci_chart_kind {
  const char *name;
  double share; /* share of the kind in the whole, 0 to 1 */
  const char *text, *note;
} laci_chart_kind;

typedef struct laci_chart {
  const char *title, *summary;
  const char *kinds_head, *bars_head; /* headings of the two charts. They say what is shown, and
                                         what value the longest bar has (the scales of the charts
                                         differ); NULL: no heading */
  const laci_chart_bar *bars;         /* [n_bars] bars, drawn from top to bottom */
  int n_bars;
  const laci_chart_kind *kinds; /* [n_kinds] kinds of bars; only the first 8 have colors of their
                                   own */
  int n_kinds;
} laci_chart;

/** Writes the chart to path, atomically. The ending chooses the format (.svg, .pdf, .png, .dot).
 * force: replace an existing file. Fails with LAC_BAD_ARGUMENT for another ending, or with
 * LAC_UNSUPPORTED if graphviz cannot draw it. */
LAC_MUST_CHECK lac_status laci_chart_write(const laci_chart *chart, const char *path, bool force,
                                           lac_error *err);

/** Draws the slowest layers of a measurement as a chart, and writes it to path (bench.c). Fails as
 * laci_chart_write does. */
LAC_MUST_CHECK lac_status laci_bench_chart(const lac_bench_result *result, const char *path,
                                           bool force, lac_error *err);

#endif
