/* SPDX-License-Identifier: Apache-2.0
 * Text tables. Cells are collected first, since a column is as wide as its widest cell; then the
 * columns are laid out for the available width, and printed. Control characters, which names in
 * files may have, are shown as ?. Next: terminal.h. */
#include "table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/error.h"
#include "terminal.h"

enum {
  GAP = 2,         /* spaces between columns */
  INDENT = 4,      /* spaces before further lines of a row */
  SHORT_NAME = 20, /* cells to which names may be shortened so that a row stays on one line */
  SHORTEST_NAME = 12,
};

/* How the columns of a table are laid out: their widths, and their lines within a row. */
typedef struct layout {
  int columns;      /* width of the terminal in cells, or TERMINAL_NO_LIMIT */
  int n_neighbours; /* number of columns side by side: all, or all but the remark */
  int width[TABLE_COLUMNS];
  int line[TABLE_COLUMNS]; /* [k]: the line within the row on which column k is printed, from 0 on
                              */
} layout;

static void add_cell(text_table *table, char *text) {
  if (!text ||
      !laci_grow((void **)&table->cells, table->n_cells, &table->capacity, sizeof *table->cells)) {
    table->out_of_memory = true;
    return;
  }
  text_make_printable(text);
  table->cells[table->n_cells++] = text;
}

void table_begin(text_table *table, const char *heads) {
  for (const char *at = heads; at; at = strchr(at, '|')) {
    if (*at == '|') at++;
    column_kind kind = *at == '>'   ? COLUMN_NUMBER
                       : *at == '~' ? COLUMN_NAME
                       : *at == '+' ? COLUMN_REMARK
                                    : COLUMN_TEXT;
    at += kind != COLUMN_TEXT;
    table->kinds[table->n_columns++] = kind;
    add_cell(table, laci_arena_text_n(&table->arena, at, strcspn(at, "|")));
  }
}

void table_add_cell(text_table *table, const char *format, ...) {
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

void table_add_shape_cell(text_table *table, int rank, const int64_t *shape) {
  char text[TABLE_SHAPE_BYTES];
  table_add_cell(table, "%s", table_shape_text(rank, shape, text));
}

/* ---- Laying out ---- */

static void measure_columns(const text_table *table, layout *l) {
  for (size_t i = 0; i < table->n_cells; i++) {
    int cells = text_count_cells(table->cells[i]), *width = &l->width[i % (size_t)table->n_columns];
    if (cells > *width) *width = cells;
  }
}

/* Returns the number of cells that columns [begin, end) take in one line; an empty remark takes
 * none. */
static int count_cells_of_line(const layout *l, int begin, int end) {
  int sum = begin < end ? l->width[begin] : 0;
  for (int column = begin + 1; column < end; column++) {
    if (l->width[column]) sum += GAP + l->width[column];
  }
  return sum;
}

/* Shortens the widest names of the line, cell by cell, until the line fits. Returns false, and
 * changes nothing, if it cannot fit. */
static bool shrink_columns(const text_table *table, layout *l, int begin, int end, int available,
                           int shortest) {
  layout tried = *l;
  while (count_cells_of_line(&tried, begin, end) > available) {
    int widest = -1;
    for (int column = begin; column < end; column++) {
      bool may = table->kinds[column] == COLUMN_NAME && tried.width[column] > shortest;
      if (may && (widest < 0 || tried.width[column] > tried.width[widest])) widest = column;
    }
    if (widest < 0) return false;
    tried.width[widest]--;
  }
  *l = tried;
  return true;
}

/* Moves columns that do not fit, even with the shortest names, to further lines. */
static void wrap_columns(const text_table *table, layout *l) {
  for (int begin = 0, line = 0; begin < l->n_neighbours; line++) {
    int available = l->columns - (line ? INDENT : 0), end = begin + 1;
    while (end < l->n_neighbours) {
      layout tried = *l;
      if (!shrink_columns(table, &tried, begin, end + 1, available, SHORTEST_NAME)) break;
      end++;
    }
    (void)shrink_columns(table, l, begin, end, available, 1);
    /* a column that is alone on its line is cut to the available width */
    if (l->width[begin] > available) l->width[begin] = available;
    for (; begin < end; begin++) l->line[begin] = line;
  }
}

static layout choose_layout(const text_table *table, int columns) {
  layout l = {.columns = columns, .n_neighbours = table->n_columns};
  measure_columns(table, &l);
  if (columns == TERMINAL_NO_LIMIT) return l;
  if (shrink_columns(table, &l, 0, l.n_neighbours, columns, SHORT_NAME)) return l;
  if (table->kinds[l.n_neighbours - 1] == COLUMN_REMARK) l.n_neighbours--;
  if (!shrink_columns(table, &l, 0, l.n_neighbours, columns, SHORTEST_NAME))
    wrap_columns(table, &l);
  return l;
}

/* ---- Printing ---- */

static bool is_line_empty(const char *const *cells, const layout *l, int begin, int end) {
  for (int column = begin; column < end; column++) {
    if (cells[column][0]) return false;
  }
  return l->line[begin] > 0;
}

static lac_status print_line(const text_table *table, const layout *l, const char *const *cells,
                             int begin, int end, FILE *out) {
  /* pending spaces, printed only before text, so that no line ends with spaces */
  int owed = l->line[begin] ? INDENT : 0;
  for (int column = begin; column < end; column++) {
    char *text = laci_alloc(strlen(cells[column]) + sizeof "...", 1);
    if (!text) return LAC_NO_MEMORY;
    int width = l->width[column];
    text_shorten(cells[column], width, text);
    bool to_right = table->kinds[column] == COLUMN_NUMBER;
    int gap = width - text_count_cells(text);
    if (to_right) owed += gap;
    if (text[0]) {
      fprintf(out, "%*s%s", owed, "", text);
      owed = 0;
    }
    owed += GAP + (to_right ? 0 : gap);
    laci_free(text);
  }
  fputc('\n', out);
  return LAC_OK;
}

static lac_status print_row(const text_table *table, const layout *l, const char *const *cells,
                            FILE *out) {
  lac_status st = LAC_OK;
  for (int begin = 0, end; !st && begin < l->n_neighbours; begin = end) {
    for (end = begin + 1; end < l->n_neighbours && l->line[end] == l->line[begin];) end++;
    if (!is_line_empty(cells, l, begin, end)) st = print_line(table, l, cells, begin, end, out);
  }
  if (!st && l->n_neighbours < table->n_columns && cells[l->n_neighbours][0]) {
    fprintf(out, "%*s", INDENT, "");
    text_print_wrapped(out, cells[l->n_neighbours], l->columns, INDENT, INDENT);
  }
  return st;
}

lac_status table_print(const text_table *table, FILE *out, lac_error *err) {
  if (table->out_of_memory) return laci_fail_memory(err, "a table");
  const layout l = choose_layout(table, terminal_columns(out));
  lac_status st = LAC_OK;
  for (size_t at = 0; !st && at < table->n_cells; at += (size_t)table->n_columns) {
    st = print_row(table, &l, table->cells + at, out);
  }
  return st ? laci_fail_memory(err, "a table") : LAC_OK;
}

void table_clear(text_table *table) {
  laci_free((void *)table->cells);
  laci_arena_clear(&table->arena);
  memset(table, 0, sizeof *table);
}
