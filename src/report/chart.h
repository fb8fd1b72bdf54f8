/* SPDX-License-Identifier: Apache-2.0
 * Horizontal bars, coloured by kind, with a legend: where something went. Laid out and drawn
 * through graphviz as the plots are, so the same formats and fonts come with it. */
#ifndef LACI_REPORT_CHART_H
#define LACI_REPORT_CHART_H

#include <stdbool.h>

#include "lacuna/status.h"

typedef struct lac_bench_result lac_bench_result;

typedef struct laci_chart_bar {
  const char *label; /* left of the bar; the middle of a long one is left out */
  double value;      /* length, >= 0 */
  double pale_value; /* a paler bar continues it up to this; 0: none */
  int kind;          /* index in kinds, for the colour; -1: none of them, and no bar */
  const char *text;  /* right of the bar */
  const char *note;  /* small, in a column of its own */
} laci_chart_bar;

/** A line of the legend, which is a chart of its own: what share of the whole the kind is. */
typedef struct laci_chart_kind {
  const char *name;
  double share; /* 0 .. 1 */
  const char *text, *note;
} laci_chart_kind;

typedef struct laci_chart {
  const char *title, *summary;
  const char *kinds_head, *bars_head; /* what each part shows, and how much its longest bar is: the
                                         two have scales of their own; NULL: nothing */
  const laci_chart_bar *bars;         /* [n_bars], drawn top to bottom as they come */
  int n_bars;
  const laci_chart_kind *kinds; /* [n_kinds] the first ones get colours of their own */
  int n_kinds;
} laci_chart;

/** Writes path (.svg .pdf .png .dot; atomic; force as everywhere). Fails LAC_BAD_ARGUMENT for
 * another ending, LAC_UNSUPPORTED where graphviz cannot draw it. */
LAC_MUST_CHECK lac_status laci_chart_write(const laci_chart *chart, const char *path, bool force,
                                           lac_error *err);

/** Draws the slowest layers of a measurement (bench.c). Fails as laci_chart_write does. */
LAC_MUST_CHECK lac_status laci_bench_chart(const lac_bench_result *result, const char *path,
                                           bool force, lac_error *err);

#endif
