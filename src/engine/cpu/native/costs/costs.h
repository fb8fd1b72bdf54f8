/* SPDX-License-Identifier: Apache-2.0
 * What layers cost where they were not timed: tables of figures, one a kind of processor, each a
 * .def of this folder. Algorithms read figures of the table that was chosen for this processor, or
 * that the file of LAC_COSTS holds. docs/decisions/costs-are-tables.md says why. Next: figures.def
 * (what is in a table), tables.c (which there are), file.c (tables of files). */
#ifndef LACI_ENGINE_CPU_NATIVE_COSTS_COSTS_H
#define LACI_ENGINE_CPU_NATIVE_COSTS_COSTS_H

#include <stdbool.h>
#include <stddef.h>

#include "lacuna/status.h"

/* ---- A table ---- */

/** What values are of. */
typedef enum laci_cost_section {
  LACI_COSTS_f32,
  LACI_COSTS_int8,
  LACI_COSTS_bf16,
  LACI_N_COST_SECTIONS,
} laci_cost_section;

/** The figures of a section; those that figures.def does not list for it are 0. */
typedef struct laci_cost_figures {
#define LACI_FIELD_f32(name) double name;
#define LACI_FIELD_int8(name)
#define LACI_FIELD_bf16(name)
#define LAC_FIGURE(section, name, kind, text) LACI_FIELD_##section(name)
#include "engine/cpu/native/costs/figures.def"
#undef LAC_FIGURE
#undef LACI_FIELD_f32
#undef LACI_FIELD_int8
#undef LACI_FIELD_bf16
} laci_cost_figures;

enum { LACI_COST_TEXT = 128 };

/** On another processor than its own an algorithm must be clearly faster than the dense one: a
 * ResNet-20 that Zen 4's figures expected to gain took 1.22 times as long on another maker's. */
#define LACI_COST_MARGIN 1.2

/** Whose costs they are. */
typedef struct laci_cost_processor {
  char vendor[LACI_COST_TEXT]; /* as cpu/model.h has it, and its family */
  int family;
  char instructions[LACI_COST_TEXT]; /* what code is generated for, then what else it has: "avx512
                                        vnni bf16" */
  char machine[LACI_COST_TEXT];      /* its name, for people */
  char date[LACI_COST_TEXT];         /* of the measurement */
} laci_cost_processor;

typedef struct laci_cost_table {
  const char *name; /* of the list; of a file: its path */
  double margin;    /* how many times as long native algorithms are reckoned to take on another
                       processor */
  laci_cost_processor of;
  laci_cost_figures figures[LACI_N_COST_SECTIONS];
} laci_cost_table;

/** Tables of the list (tables.c); NULL: there are no more. */
const laci_cost_table *laci_cost_table_at(int at);
/** A section is there as a whole, or not at all; f32 always is. */
bool laci_cost_table_has(const laci_cost_table *table, laci_cost_section section);

/* ---- Figures by name (tables.c) ---- */

/** How small a figure may be: figures.def. */
typedef enum laci_figure_kind {
  LACI_FIGURE_SHARE,
  LACI_FIGURE_AMOUNT,
  LACI_FIGURE_MAYBE,
} laci_figure_kind;

typedef struct laci_figure {
  laci_cost_section section;
  const char *section_name, *name, *text;
  laci_figure_kind kind;
  size_t at; /* in laci_cost_figures */
} laci_figure;

/** NULL: there are no more. */
const laci_figure *laci_figure_at(int at);
double laci_figure_of(const laci_cost_table *table, const laci_figure *figure);
void laci_figure_set(laci_cost_table *table, const laci_figure *figure, double value);

/* ---- The choice (costs.c) ---- */

/** What plans read. */
typedef struct laci_costs {
  const laci_cost_table *tables[LACI_N_COST_SECTIONS];
  bool own;             /* the table of f32 is this processor's */
  double margin;        /* 1 where it is */
  laci_cost_table read; /* of a file, where there is one */
} laci_costs;

/** This processor, as far as LAC_CPU and laci_cpu_cap allow. */
laci_cost_processor laci_costs_processor(void);
/** The list's own table of a processor, or the nearest by instructions, then vendor, then what else
 * it has; a section that it lacks is the nearest's that has it. */
void laci_costs_choose(const laci_cost_processor *of, laci_costs *costs);
/** The same, for sections that `table` lacks; it is held to be nobody else's than it says. */
void laci_costs_take(const laci_cost_table *table, const laci_cost_processor *of,
                     laci_costs *costs);
/** What holds here: the table or file that LAC_COSTS names, or else the choice. `costs` must not be
 * moved. Fails as laci_cost_table_read. */
LAC_MUST_CHECK lac_status laci_costs_now(laci_costs *costs, lac_error *err);

/* ---- Files (file.c) ---- */

/** A table as a .def has it. Fails LAC_NOT_FOUND, LAC_BAD_FILE (the text has file, line, what was
 * found and what was wanted), LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_cost_table_read(const char *path, laci_cost_table *table,
                                               lac_error *err);
/** The text of such a file, the caller's (laci_free); head: what its comment says, a line each.
 * NULL: no memory. */
char *laci_cost_table_text(const laci_cost_table *table, const char *head);

#endif
