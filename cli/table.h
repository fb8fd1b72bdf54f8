/* SPDX-License-Identifier: Apache-2.0
 * Text tables: columns as wide as their widest cell, numbers to the right, two spaces between. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stdint.h>
#include <stdio.h>

#include "base/memory.h"
#include "lacuna/status.h"

enum { TABLE_COLUMNS = 10 };

/** Zero-initialised is empty; table_begin names the columns. */
typedef struct text_table {
  int n_columns, n_rows;
  bool to_right[TABLE_COLUMNS];
  const char **cells; /* [n_rows, n_columns], the heads first; in the arena */
  size_t n_cells, room;
  laci_arena arena;
  bool out_of_memory; /* cells are missing; table_print fails */
} text_table;

/** Heads separated by |; > before a head puts its column to the right: "layer|op|>zeros". */
void table_begin(text_table *table, const char *heads);

/** Fills the next cell, row after row. */
void table_cell(text_table *table, const char *format, ...) LAC_PRINTF(2, 3);

enum { TABLE_SHAPE_BYTES = 256 };

/** A shape as a text, "64x3x3x3"; nothing for rank 0. Returns text. */
const char *table_shape_text(int rank, const int64_t *shape, char text[TABLE_SHAPE_BYTES]);

/** Fills the next cell with a shape. */
void table_shape_cell(text_table *table, int rank, const int64_t *shape);

/** Fails LAC_NO_MEMORY where a cell could not be stored. */
LAC_MUST_CHECK lac_status table_print(const text_table *table, FILE *out, lac_error *err);

void table_clear(text_table *table);

#endif
