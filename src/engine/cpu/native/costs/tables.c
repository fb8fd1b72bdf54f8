/* SPDX-License-Identifier: Apache-2.0
 * The list of tables, and the list of figures. A table is a file NAME.def, which a command writes
 * (docs/reference/bench.md); it needs a block and a name here. */
#include <string.h>

#include "engine/cpu/native/costs/costs.h"

/* ---- Tables ---- */

#define LAC_PROCESSOR(vendor, family, instructions, machine, date) \
  .of = {vendor, family, instructions, machine, date},
#define LAC_COST(section, name, value, text) .figures[LACI_COSTS_##section].name = (value),

static const laci_cost_table zen4 = {
    .name = "zen4",
    .margin = LACI_COST_MARGIN,
#include "engine/cpu/native/costs/zen4.def"
};

static const laci_cost_table zen3 = {
    .name = "zen3",
    .margin = LACI_COST_MARGIN,
#include "engine/cpu/native/costs/zen3.def"
};

static const laci_cost_table intel = {
    .name = "intel",
    .margin = LACI_COST_MARGIN,
#include "engine/cpu/native/costs/intel.def"
};

static const laci_cost_table neon = {
    .name = "neon", .margin = 1, /* its figures are estimates that include a margin; they were not
                                    measured */
#include "engine/cpu/native/costs/neon.def"
};

/* The list of tables. If several are equally near to a processor, the first of them is chosen. */
static const laci_cost_table *const tables[] = {&zen4, &zen3, &intel, &neon};

const laci_cost_table *laci_cost_table_at(int at) {
  const int n = (int)(sizeof tables / sizeof *tables);
  return at >= 0 && at < n ? tables[at] : NULL;
}

bool laci_cost_table_has_section(const laci_cost_table *table, laci_cost_section section) {
  return table->figures[section].generated_share > 0;
}

/* ---- Figures ---- */

#define LAC_FIGURE(section, name, kind, text) \
  {LACI_COSTS_##section,                      \
   #section,                                  \
   #name,                                     \
   text,                                      \
   LACI_FIGURE_##kind,                        \
   offsetof(laci_cost_figures, name)},
static const laci_figure figures[] = {
#include "engine/cpu/native/costs/figures.def"
};

const laci_figure *laci_figure_at(int at) {
  const int n = (int)(sizeof figures / sizeof *figures);
  return at >= 0 && at < n ? &figures[at] : NULL;
}

double laci_figure_get_value(const laci_cost_table *table, const laci_figure *figure) {
  double value;
  memcpy(&value, (const char *)&table->figures[figure->section] + figure->at, sizeof value);
  return value;
}

void laci_figure_set_value(laci_cost_table *table, const laci_figure *figure, double value) {
  memcpy((char *)&table->figures[figure->section] + figure->at, &value, sizeof value);
}
