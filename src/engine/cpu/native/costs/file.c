/* SPDX-License-Identifier: Apache-2.0
 * Tables in files. The format is that of the .def files, which the compiler includes: a comment, a
 * line LAC_PROCESSOR(...), and a line LAC_COST(section, name, value, "text") for each figure of
 * each section. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "engine/cpu/native/costs/costs.h"

enum { MOST_BYTES = 1 << 16, MOST_FIGURES = 128, SHOWN = 40, FIELDS = 5 };

/* ---- Lines ---- */

typedef struct table_parser {
  const char *path;
  int line;
  laci_cost_table *table;
  bool has_processor, seen[MOST_FIGURES]; /* seen: for each figure, whether its line was read */
  lac_error *err;
} table_parser;

/** A parsed line: the name of the macro, and its arguments without quotes. */
typedef struct parsed_line {
  char name[LACI_COST_TEXT], fields[FIELDS][LACI_COST_TEXT];
  int n;
} parsed_line;

static lac_status fail_parsing(const table_parser *r, const char *found, const char *wanted) {
  return laci_fail(r->err, LAC_BAD_FILE, "%s:%d: %.*s: wanted %s", r->path, r->line, SHOWN, found,
                   wanted);
}

static const char *skip_spaces(const char *at) { return at + strspn(at, " \t\r"); }

/** Reads a word or a quoted text; returns the position after it. NULL: there is none, or it is too
 * long. */
static const char *parse_field(const char *at, char field[LACI_COST_TEXT]) {
  const bool quoted = *at == '"';
  const size_t n = quoted ? strcspn(at + 1, "\"\\") : strcspn(at, ",() \t\r\"");
  if (n >= LACI_COST_TEXT || (!quoted && n == 0) || (quoted && at[1 + n] != '"')) return NULL;
  memcpy(field, at + quoted, n);
  field[n] = 0;
  return skip_spaces(at + n + (quoted ? 2 : 0));
}

/** Reads a line that has NAME(field, field ...) and nothing else; false: the line has another
 * form. */
static bool parse_macro_call(const char *line, parsed_line *c) {
  const char *at = parse_field(skip_spaces(line), c->name);
  c->n = 0;
  if (!at || *at != '(') return false;
  do {
    if (c->n == FIELDS) return false;
    at = parse_field(skip_spaces(at + 1), c->fields[c->n++]);
  } while (at && *at == ',');
  return at && *at == ')' && *skip_spaces(at + 1) == 0;
}

static bool parse_number(const char *text, double *value) {
  char *end;
  if (!isdigit((unsigned char)*text)) return false;
  *value = strtod(text, &end);
  return *end == 0 && isfinite(*value);
}

/** Returns the figure of the section and name in the parsed line, and its index in the list; NULL:
 * there is no such figure. */
static const laci_figure *find_figure_of_line(const parsed_line *c, int *place) {
  const laci_figure *figure;
  for (*place = 0; (figure = laci_figure_at(*place)); (*place)++) {
    const bool section = strcmp(figure->section_name, c->fields[0]) == 0;
    if (section && strcmp(figure->name, c->fields[1]) == 0) return figure;
  }
  return NULL;
}

static lac_status parse_figure(table_parser *r, const char *line, const parsed_line *c) {
  int place;
  double value;
  const laci_figure *figure = c->n == 4 ? find_figure_of_line(c, &place) : NULL;
  if (!figure) {
    return fail_parsing(
        r, line, "LAC_COST(section, name, value, \"text\") with a figure's section and name");
  }
  if (!parse_number(c->fields[2], &value))
    return fail_parsing(r, line, "a number of 0 or more as value");
  if (figure->kind == LACI_FIGURE_SHARE && !(value > 0))
    return fail_parsing(r, line, "a value above 0");
  if (r->seen[place]) return fail_parsing(r, line, "each figure once");
  r->seen[place] = true;
  laci_figure_set_value(r->table, figure, value);
  return LAC_OK;
}

static lac_status parse_processor(table_parser *r, const char *line, const parsed_line *c) {
  laci_cost_processor *of = &r->table->of;
  double family;
  if (c->n != FIELDS || !parse_number(c->fields[1], &family) || family > 1e6) {
    return fail_parsing(r, line, "LAC_PROCESSOR(vendor, family, instructions, machine, date)");
  }
  if (r->has_processor) return fail_parsing(r, line, "one LAC_PROCESSOR");
  r->has_processor = true;
  of->family = (int)family;
  memcpy(of->vendor, c->fields[0], sizeof of->vendor);
  memcpy(of->instructions, c->fields[2], sizeof of->instructions);
  memcpy(of->machine, c->fields[3], sizeof of->machine);
  memcpy(of->date, c->fields[4], sizeof of->date);
  return LAC_OK;
}

static lac_status parse_line(table_parser *r, const char *line) {
  parsed_line c = {.n = 0};
  if (*skip_spaces(line) == 0) return LAC_OK;
  const bool is_call = parse_macro_call(line, &c);
  if (is_call && strcmp(c.name, "LAC_COST") == 0) return parse_figure(r, line, &c);
  if (is_call && strcmp(c.name, "LAC_PROCESSOR") == 0) return parse_processor(r, line, &c);
  return fail_parsing(r, line, "LAC_COST(...), LAC_PROCESSOR(...) or a comment");
}

/* ---- The file ---- */

/** Checks that the section f32 is present, and that every section with a figure has all its
 * figures. */
static lac_status check_all_figures_present(const table_parser *r) {
  bool begun[LACI_N_COST_SECTIONS] = {[LACI_COSTS_f32] = true};
  const laci_figure *figure;
  for (int at = 0; (figure = laci_figure_at(at)); at++) begun[figure->section] |= r->seen[at];
  for (int at = 0; (figure = laci_figure_at(at)); at++) {
    if (!begun[figure->section] || r->seen[at] || figure->kind == LACI_FIGURE_SPARED) continue;
    return laci_fail(r->err, LAC_BAD_FILE,
                     "%s:%d: it ends without LAC_COST(%s, %s, ...): wanted all figures of %s",
                     r->path, r->line, figure->section_name, figure->name, figure->section_name);
  }
  if (r->has_processor) return LAC_OK;
  return laci_fail(r->err, LAC_BAD_FILE, "%s:%d: it ends without LAC_PROCESSOR(...): wanted one",
                   r->path, r->line);
}

/** Replaces comments with spaces, which keeps line numbers. False: a comment does not end. */
static bool blank_comments(char *text) {
  for (char *begin; (begin = strstr(text, "/*"));) {
    char *end = strstr(begin + 2, "*/");
    if (!end) return false;
    for (char *at = begin; at < end + 2; at++) *at = *at == '\n' ? '\n' : ' ';
    text = end + 2;
  }
  return true;
}

static lac_status parse_text(table_parser *r, char *text) {
  lac_status st = LAC_OK;
  if (!blank_comments(text)) {
    return laci_fail(r->err, LAC_BAD_FILE, "%s: a comment does not end: wanted */", r->path);
  }
  while (!st && *text) {
    const size_t n = strcspn(text, "\n");
    const bool last = text[n] == 0;
    text[n] = 0;
    r->line++;
    st = parse_line(r, text);
    text += n + !last;
  }
  return st ? st : check_all_figures_present(r);
}

lac_status laci_cost_table_read(const char *path, laci_cost_table *table, lac_error *err) {
  char *text = NULL;
  table_parser r = {.path = path, .table = table, .err = err};
  *table = (laci_cost_table){.name = "file", .margin = LACI_COST_MARGIN};
  lac_status st = laci_file_read_text(path, MOST_BYTES, &text, err);
  if (!st) st = parse_text(&r, text);
  laci_free(text);
  return st;
}

/* ---- Writing ---- */

/** Writes the shortest text that is read back as the same number. */
static void write_shortest_number(double value, char *text, size_t size) {
  enum { DIGITS = 17 };
  for (int digits = 3; digits <= DIGITS; digits++) {
    (void)snprintf(text, size, "%.*g", digits, value);
    if (strtod(text, NULL) == value) return;
  }
}

char *laci_cost_table_text(const laci_cost_table *table, const char *head) {
  const laci_cost_processor *of = &table->of;
  const laci_figure *figure;
  laci_cost_section section = LACI_N_COST_SECTIONS;
  char *text = laci_alloc(MOST_BYTES, 1);
  size_t used = 0;
  if (!text) return NULL;
#define WRITE(...) used += (size_t)snprintf(text + used, MOST_BYTES - used, __VA_ARGS__)
  WRITE("/* SPDX-License-Identifier: Apache-2.0\n");
  for (size_t n; *head; head += n + (head[n] == '\n')) {
    n = strcspn(head, "\n");
    WRITE(" * %.*s%s\n", (int)n, head, head[n] && head[n + 1] ? "" : " */");
  }
  WRITE("LAC_PROCESSOR(\"%s\", %d, \"%s\", \"%s\", \"%s\")\n", of->vendor, of->family,
        of->instructions, of->machine, of->date);
  for (int at = 0; (figure = laci_figure_at(at)); at++) {
    char number[32];
    if (!laci_cost_table_has_section(table, figure->section)) continue;
    write_shortest_number(laci_figure_get_value(table, figure), number, sizeof number);
    WRITE("%sLAC_COST(%s, %s, %s, \"%s\")\n", figure->section == section ? "" : "\n",
          figure->section_name, figure->name, number, figure->text);
    section = figure->section;
  }
#undef WRITE
  return text;
}
