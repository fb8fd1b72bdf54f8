/* SPDX-License-Identifier: Apache-2.0
 * What layers cost where they were not timed: tables of figures, one for each kind of processor,
 * each a .def of this folder. The cost formulas of algorithms read the table that was chosen for
 * this processor, or the one in the file of LAC_COSTS. docs/decisions/costs-are-tables.md says why.
 * Read next: figures.def (what is in a table), tables.c (the list of tables), file.c (tables in
 * files). */
#ifndef LACI_ENGINE_CPU_NATIVE_COSTS_COSTS_H
#define LACI_ENGINE_CPU_NATIVE_COSTS_COSTS_H

#include <stdbool.h>
#include <stddef.h>

#include "lacuna/status.h"

/* ---- A table ---- */

/** A section of a table of costs: the figures for layers that read and write values of one type. */
typedef enum laci_cost_section {
  LACI_COSTS_f32,
  LACI_COSTS_int8,
  LACI_COSTS_bf16,
  LACI_N_COST_SECTIONS,
} laci_cost_section;

/** The figures of one section of a table. Figures that figures.def does not list for the section
 * are 0. */
typedef struct laci_cost_figures {
#define LACI_FIELD_f32(name) double name;
#define LACI_FIELD_int8(name)
#define LACI_FIELD_bf16(name)
#define LAC_FIGURE(section, name, kind, text) LACI_FIELD_##section(name)
#define LAC_OWN_FIGURE(section, name, kind, text) double name;
#include "engine/cpu/native/costs/figures.def"
#undef LAC_FIGURE
#undef LACI_FIELD_f32
#undef LACI_FIELD_int8
#undef LACI_FIELD_bf16
} laci_cost_figures;

enum { LACI_COST_TEXT = 128 };

/** The usual margin: the factor for costs of native algorithms if a table was measured on another
 * processor. There, an algorithm must be clearly faster than the dense one. By the figures of Zen
 * 4, a ResNet-20 was expected to gain on another vendor's processor, and took 1.22 times as
 * long. */
#define LACI_COST_MARGIN 1.2

/** A kind of processor: the one on which a table of costs was measured, or this one. */
typedef struct laci_cost_processor {
  char vendor[LACI_COST_TEXT]; /* vendor of the processor, as laci_cpu_read_vendor writes it */
  int family;                  /* number of the processor family in the vendor's numbering */
  char instructions[LACI_COST_TEXT]; /* the instruction set of generated code, then further
                                        extensions: "avx512 vnni bf16" */
  char machine[LACI_COST_TEXT];      /* name of the processor, used only in texts */
  char date[LACI_COST_TEXT];         /* date of the measurement */
} laci_cost_processor;

typedef struct laci_cost_table {
  const char *name; /* name of the table in the list, or path of its file */
  double margin;    /* factor for the costs of native algorithms on processors other than `of` */
  laci_cost_processor of; /* the processor on which the table was measured */
  laci_cost_figures figures[LACI_N_COST_SECTIONS];
} laci_cost_table;

/** Returns the table with index `at` of the list in tables.c; NULL: the list is shorter. */
const laci_cost_table *laci_cost_table_at(int at);
/** Does the table have this section? A section is either complete or missing; f32 is never
 * missing. */
bool laci_cost_table_has_section(const laci_cost_table *table, laci_cost_section section);

/* ---- Figures by name (tables.c) ---- */

/** The kinds of figures, by the values that they may have (figures.def). */
typedef enum laci_figure_kind {
  LACI_FIGURE_SHARE,
  LACI_FIGURE_AMOUNT,
  LACI_FIGURE_MAYBE,
  LACI_FIGURE_SPARED,
} laci_figure_kind;

typedef struct laci_figure {
  laci_cost_section section;
  const char *section_name, *name, *text;
  laci_figure_kind kind;
  size_t at; /* offset of the figure in laci_cost_figures, in bytes */
} laci_figure;

/** Returns the figure with index `at` of the list in figures.def; NULL: the list is shorter. */
const laci_figure *laci_figure_at(int at);
double laci_figure_get_value(const laci_cost_table *table, const laci_figure *figure);
void laci_figure_set_value(laci_cost_table *table, const laci_figure *figure, double value);

/* ---- The choice of tables (costs.c) ---- */

/** The tables of costs that planning reads. */
typedef struct laci_costs {
  const laci_cost_table *tables[LACI_N_COST_SECTIONS]; /* for each section, the table from which it
                                                          is taken */
  bool own;             /* true: the table for f32 was measured on this kind of processor; false: on
                           another kind */
  double margin;        /* factor for the costs of native algorithms; 1 where `own` is true */
  laci_cost_table read; /* the table that was read from a file, if there was one */
} laci_costs;

/** Returns a description of this processor, with the instruction sets that LAC_CPU and
 * laci_cpu_limit_level allow. */
laci_cost_processor laci_costs_this_processor(void);
/** Chooses tables of the list for a processor: the table of this kind of processor, or else the
 * nearest one by instruction set, then by vendor, then by extensions. A section that this table
 * lacks comes from the nearest table that has it. */
void laci_costs_choose_tables(const laci_cost_processor *processor, laci_costs *costs);
/** Uses all sections that `table` has; they count as measured on the processor that the table
 * names. Chooses tables for the other sections as laci_costs_choose_tables does. */
void laci_costs_use_table(const laci_cost_table *table, const laci_cost_processor *processor,
                          laci_costs *costs);
/** Sets the costs of this process: those of the table or file that LAC_COSTS names, or else those
 * that laci_costs_choose_tables chooses. *costs must not be moved afterwards. Fails as
 * laci_cost_table_read does. */
LAC_MUST_CHECK lac_status laci_costs_load(laci_costs *costs, lac_error *err);

/* ---- Files (file.c) ---- */

/** Reads a table of costs from a file in the format of the .def files in this folder. Fails
 * LAC_NOT_FOUND, LAC_BAD_FILE (the text has file, line, what was found and what was expected),
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_cost_table_read(const char *path, laci_cost_table *table,
                                               lac_error *err);
/** Returns the table as the text of such a file, which the caller frees (laci_free). head: lines
 * for the comment at its top. NULL: no memory. */
char *laci_cost_table_text(const laci_cost_table *table, const char *head);

#endif
