/* SPDX-License-Identifier: Apache-2.0
 * Text tables. Cells are collected first, since a column is as wide as its widest cell. Width is
 * counted in code points of UTF-8; control characters, which a name in a file may hold, are shown
 * as ?. */
#include "table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/error.h"

static void add_cell(text_table *table, char *text) {
  if (!text ||
      !laci_grow((void **)&table->cells, table->n_cells, &table->room, sizeof *table->cells)) {
    table->out_of_memory = true;
    return;
  }
  for (char *c = text; *c; c++) {
    if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
  }
  table->cells[table->n_cells++] = text;
}

void table_begin(text_table *table, const char *heads) {
  for (const char *at = heads; at; at = strchr(at, '|')) {
    if (*at == '|') at++;
    bool to_right = *at == '>';
    at += to_right;
    table->to_right[table->n_columns++] = to_right;
    add_cell(table, laci_arena_text_n(&table->arena, at, strcspn(at, "|")));
  }
}

void table_cell(text_table *table, const char *format, ...) {
  va_list values, again;
  va_start(values, format);
  va_copy(again, values);
  int n = vsnprintf(NULL, 0, format, values);
  char *text = n < 0 ? NULL : laci_arena_alloc(&table->arena, (size_t)n + 1, 1);
  if (text) vsnprintf(text, (size_t)n + 1, format, again);
  va_end(again);
  va_end(values);
  add_cell(table, text);
}

const char *table_shape_text(int rank, const int64_t *shape, char text[TABLE_SHAPE_BYTES]) {
  size_t used = 0;
  text[0] = 0;
  for (int axis = 0; axis < rank && used < TABLE_SHAPE_BYTES; axis++) {
    used += (size_t)snprintf(text + used, TABLE_SHAPE_BYTES - used, "%s%" PRId64, axis ? "x" : "",
                             shape[axis]);
  }
  return text;
}

void table_shape_cell(text_table *table, int rank, const int64_t *shape) {
  char text[TABLE_SHAPE_BYTES];
  table_cell(table, "%s", table_shape_text(rank, shape, text));
}

static int width_of(const char *text) {
  int width = 0;
  for (; *text; text++) width += ((unsigned char)*text & 0xc0) != 0x80;
  return width;
}

lac_status table_print(const text_table *table, FILE *out, lac_error *err) {
  if (table->out_of_memory) return laci_fail_memory(err, "a table");
  int width[TABLE_COLUMNS] = {0};
  size_t n_columns = (size_t)table->n_columns;
  for (size_t i = 0; i < table->n_cells; i++) {
    int cell = width_of(table->cells[i]);
    if (cell > width[i % n_columns]) width[i % n_columns] = cell;
  }
  int owed = 0; /* spaces before the next text, held back so that no line ends with them */
  for (size_t i = 0; i < table->n_cells; i++) {
    size_t column = i % n_columns;
    bool to_right = table->to_right[column], is_last = column + 1 == n_columns;
    int gap = width[column] - width_of(table->cells[i]);
    if (to_right) owed += gap;
    if (table->cells[i][0]) {
      fprintf(out, "%*s%s", owed, "", table->cells[i]);
      owed = 0;
    }
    owed = is_last ? 0 : owed + 2 + (to_right ? 0 : gap);
    if (is_last) fputc('\n', out);
  }
  return LAC_OK;
}

void table_clear(text_table *table) {
  laci_free((void *)table->cells);
  laci_arena_clear(&table->arena);
  memset(table, 0, sizeof *table);
}
