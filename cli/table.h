/* SPDX-License-Identifier: Apache-2.0
 * Text tables: columns are as wide as their widest cell and separated by two spaces; numbers are
 * right-aligned. If the terminal is too narrow, names are shortened in the middle; if that is not
 * enough, remarks are printed below their row, and then columns that do not fit are printed on
 * further lines. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stdint.h>
#include <stdio.h>

#include "base/memory.h"
#include "lacuna/status.h"

enum { TABLE_COLUMNS = 12 };

typedef enum column_kind {
  COLUMN_TEXT,
  COLUMN_NUMBER, /* numbers, which are right-aligned */
  COLUMN_NAME,   /* names, which may be shortened */
  COLUMN_REMARK, /* a remark, which is a sentence; only the last column */
} column_kind;

/** A table; zero-initialized it is empty, and table_begin names the columns. */
typedef struct text_table {
  int n_columns;
  column_kind kinds[TABLE_COLUMNS];
  const char **cells; /* [n_rows, n_columns], row 0 has the heads; in the arena */
  size_t n_cells, capacity;
  laci_arena arena;
  bool out_of_memory; /* cells are missing; table_print fails */
} text_table;

/** Starts a table. heads: the columns' heads, separated by |. A prefix sets a column's kind: >
 * numbers, ~ names, + the remark: "~layer|op|>zeros|+". */
void table_begin(text_table *table, const char *heads);

/** Fills the next cell, row after row. */
void table_add_cell(text_table *table, const char *format, ...) LAC_PRINTF(2, 3);

enum { TABLE_SHAPE_BYTES = 256 };

/** Writes a shape as text, "64x3x3x3"; an empty text for rank 0. Returns text. */
const char *table_shape_text(int rank, const int64_t *shape, char text[TABLE_SHAPE_BYTES]);

/** Fills the next cell with a shape. */
void table_add_shape_cell(text_table *table, int rank, const int64_t *shape);

/** Prints the table in at most the width of `out`. Fails LAC_NO_MEMORY if a cell could not be
 * stored. */
LAC_MUST_CHECK lac_status table_print(const text_table *table, FILE *out, lac_error *err);

void table_clear(text_table *table);

#endif
