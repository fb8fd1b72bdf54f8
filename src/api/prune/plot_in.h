/* SPDX-License-Identifier: Apache-2.0
 * What a drawing of a network shows, from a report: for lac_plot, and for pages. */
#ifndef LACI_API_PRUNE_PLOT_IN_H
#define LACI_API_PRUNE_PLOT_IN_H

#include "base/memory.h"
#include "report/plot.h"

typedef struct lac_model lac_model;
typedef struct lac_report lac_report;
typedef struct laci_analysis laci_analysis;

/** A drawing, and what it points to. */
typedef struct laci_report_plot {
  laci_plot plot;
  laci_analysis *analysis;
  laci_arena arena;
  char title[512], summary[256];
} laci_report_plot;

/** Fills *made from a report of this model. Clear it in any case. Fails LAC_BAD_ARGUMENT,
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_report_plot_make(const lac_model *model, const lac_report *report,
                                                laci_report_plot *made, lac_error *err);
void laci_report_plot_clear(laci_report_plot *made);

#endif
