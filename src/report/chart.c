/* SPDX-License-Identifier: Apache-2.0
 * Draws the chart of chart.h as one graphviz node whose label is a table. Each bar is a row, in
 * which the bar is a colored cell of its width. Cells of text are as wide as the text in the widest
 * font. label.h escapes texts; render.h lays out and writes the formats. */
#include "report/chart.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/to_int.h"
#include "base/writer.h"
#include "report/label.h"
#include "report/render.h"
#include "report/text_width.h"

enum {
  LONGEST_BAR = 320,
  BAR_HEIGHT = 12,
  NAME_HEAD = 14,
  NAME_TAIL = 32,
  LINE_WIDTH = 110,
  TITLE_SIZE = 18,
  TEXT_SIZE = 11,
  NOTE_SIZE = 9,
  N_COLUMNS = 4 /* number of columns of the table: name, bar, text, note */
};

/* Colors of the kinds of bars, which most people can distinguish. In a gray print, the order of the
 * bars helps. All kinds beyond these have the last color. */
static const char *const colours[] = {"#4477AA", "#EE9944", "#559955", "#AA3377", "#BBAA33",
                                      "#66BBDD", "#CC5555", "#775544", "#AAAAAA"};
static const char pale_colour[] = "#DDDDDD";
enum { N_COLOURS = sizeof colours / sizeof *colours };

static const char *colour_of_kind(int kind) {
  return colours[kind >= 0 && kind < N_COLOURS - 1 ? kind : N_COLOURS - 1];
}

static bool is_utf8_continuation(char c) { return ((unsigned char)c & 0xC0) == 0x80; }

/* Shortens a name in the middle, "/encoder/layers/.../conv1/Conv". It leaves more of its end, which
 * is more specific. */
static void shorten_name(const char *name, char *text, size_t size) {
  size_t n = strlen(name), head = NAME_HEAD;
  const char *tail = name + n;
  if (n <= NAME_HEAD + NAME_TAIL + 3) {
    (void)snprintf(text, size, "%s", name);
    return;
  }
  tail -= NAME_TAIL;
  while (head > 0 && is_utf8_continuation(name[head])) head--;
  while (is_utf8_continuation(*tail)) tail++;
  (void)snprintf(text, size, "%.*s...%s", (int)head, name, tail);
}

/* Writes a row of the table with one cell over all columns. */
static void write_full_width_row(laci_label *label, const char *text, int size, bool bold) {
  if (!text || !*text) return;
  laci_label_begin_line(label);
  laci_label_set_font(label, size, bold);
  laci_label_add_markup(label,
                        "<TR><TD COLSPAN=\"%d\" ALIGN=\"LEFT\" BALIGN=\"LEFT\">"
                        "<FONT POINT-SIZE=\"%d\">%s",
                        N_COLUMNS, size, bold ? "<B>" : "");
  laci_label_add_text(label, text, LINE_WIDTH);
  laci_label_add_markup(label, "%s</FONT></TD></TR>", bold ? "</B>" : "");
}

static void write_empty_row(laci_label *label) {
  laci_label_add_markup(label, "<TR><TD COLSPAN=\"%d\" HEIGHT=\"%d\"></TD></TR>", N_COLUMNS,
                        BAR_HEIGHT);
}

static void write_coloured_cell(laci_label *label, int width, const char *colour) {
  if (width < 1) return;
  laci_label_add_markup(label, "<TD FIXEDSIZE=\"TRUE\" WIDTH=\"%d\" HEIGHT=\"%d\"%s%s%s></TD>",
                        width, BAR_HEIGHT, colour ? " BGCOLOR=\"" : "", colour ? colour : "",
                        colour ? "\"" : "");
}

/* Writes the cell of a bar, then an empty cell for the rest of the width, without which graphviz
 * would center the bar. share: length of the bar, 0 to 1; < 0: no bar. A paler bar continues it up
 * to pale_share. */
static void write_bar(laci_label *label, double share, double pale_share, const char *colour) {
  int width = share < 0 ? 0 : (int)laci_clamp_to_range(LONGEST_BAR * share, 0, LONGEST_BAR),
      pale = (int)laci_clamp_to_range(LONGEST_BAR * pale_share, INT32_MIN, INT32_MAX);
  if (share >= 0 && width < 1) width = 1;
  if (width > LONGEST_BAR) width = LONGEST_BAR;
  pale = pale > LONGEST_BAR ? LONGEST_BAR - width : pale - width;
  if (pale < 0) pale = 0;
  laci_label_add_markup(label,
                        "<TD ALIGN=\"LEFT\"><TABLE BORDER=\"0\" CELLBORDER=\"0\" "
                        "CELLSPACING=\"0\" CELLPADDING=\"0\"><TR>");
  write_coloured_cell(label, width, colour);
  write_coloured_cell(label, pale, pale_colour);
  write_coloured_cell(label, LONGEST_BAR - width - pale, NULL);
  laci_label_add_markup(label, "</TR></TABLE></TD>");
}

/* Opens a column's cell; the caller writes its contents. */
static void begin_text_cell(laci_label *label, const char *align, double width) {
  laci_label_begin_line(label);
  laci_label_add_markup(label, "<TD ALIGN=\"%s\" WIDTH=\"%.0f\">", align, ceil(width) + 4);
}

static void write_text_and_note_cells(laci_label *label, const char *text, const char *note) {
  begin_text_cell(label, "LEFT", laci_text_width(text, TEXT_SIZE, false));
  laci_label_add_text(label, text, LINE_WIDTH);
  laci_label_add_markup(label, "</TD>");
  if (!note) note = "";
  begin_text_cell(label, "LEFT", laci_text_width(note, NOTE_SIZE, false));
  if (*note) {
    laci_label_add_markup(label, "<FONT POINT-SIZE=\"%d\" COLOR=\"#5E5E5E\">", NOTE_SIZE);
    laci_label_add_text(label, note, LINE_WIDTH);
    laci_label_add_markup(label, "</FONT>");
  }
  laci_label_add_markup(label, "</TD></TR>");
}

static void write_row(laci_label *label, const laci_chart_bar *bar, double share,
                      double pale_share) {
  char name[4 * (NAME_HEAD + NAME_TAIL) + 8]; /* in UTF-8, a character has up to four bytes */
  shorten_name(bar->label, name, sizeof name);
  laci_label_add_markup(label, "<TR>");
  begin_text_cell(label, "RIGHT", laci_text_width(name, TEXT_SIZE, false));
  laci_label_add_text(label, name, LINE_WIDTH);
  laci_label_add_markup(label, "</TD>");
  write_bar(label, bar->kind < 0 ? -1 : share, pale_share, colour_of_kind(bar->kind));
  write_text_and_note_cells(label, bar->text, bar->note);
}

/* Writes the legend as a second chart: for each kind, a bar shows its share of the whole. Kinds
 * beyond the number of colors all have the last color. */
static void write_legend(laci_label *label, const laci_chart *chart) {
  write_full_width_row(label, chart->kinds_head, TEXT_SIZE, true);
  for (int at = 0; at < chart->n_kinds; at++) {
    const laci_chart_kind *kind = &chart->kinds[at];
    laci_chart_bar bar = {.label = kind->name, .kind = at, .text = kind->text, .note = kind->note};
    write_row(label, &bar, kind->share, 0);
  }
}

static void write_bar_rows(laci_label *label, const laci_chart *chart) {
  double most = 0;
  for (int at = 0; at < chart->n_bars; at++) {
    const laci_chart_bar *bar = &chart->bars[at];
    if (bar->kind >= 0) most = fmax(most, fmax(bar->value, bar->pale_value));
  }
  write_full_width_row(label, chart->bars_head, TEXT_SIZE, true);
  for (int at = 0; at < chart->n_bars; at++) {
    const laci_chart_bar *bar = &chart->bars[at];
    double scale = most > 0 ? 1 / most : 0;
    write_row(label, bar, fmax(bar->value, 0) * scale, bar->pale_value * scale);
  }
}

static void write_table(laci_label *label, const laci_chart *chart) {
  write_full_width_row(label, chart->title, TITLE_SIZE, true);
  write_full_width_row(label, chart->summary, TEXT_SIZE, false);
  write_empty_row(label);
  write_legend(label, chart);
  write_empty_row(label);
  write_bar_rows(label, chart);
}

static void write_graphviz_node(laci_label *drawing, const laci_label *rows) {
  laci_label_add_markup(drawing,
                        "digraph chart {\n  graph [charset=\"UTF-8\", bgcolor=\"#FFFFFF\"];\n"
                        "  node [shape=\"plain\", fontname=\"" LACI_FONTS
                        "\", fontsize=\"%d\", fontcolor=\"#1A1A1A\"];\n",
                        TEXT_SIZE);
  laci_label_add_markup(drawing,
                        "  chart [label=<<TABLE BORDER=\"0\" CELLBORDER=\"0\" CELLSPACING=\"2\" "
                        "CELLPADDING=\"1\" WIDTH=\"%.0f\">",
                        ceil(rows->widest) + 8);
  laci_label_append_label(drawing, rows);
  laci_label_add_markup(drawing, "</TABLE>>];\n}\n");
}

lac_status laci_chart_write(const laci_chart *chart, const char *path, bool force, lac_error *err) {
  laci_picture picture;
  laci_label rows = {0}, drawing = {0};
  char *bytes = NULL;
  size_t size_bytes = 0;
  lac_status st = laci_picture_format_of_path(path, &picture, err);
  if (st) return st;
  write_table(&rows, chart);
  write_graphviz_node(&drawing, &rows);
  st = laci_render(&drawing, picture, &bytes, &size_bytes, err);
  if (st) st = laci_fail_with_prefix(err, st, "%s", path);
  else st = laci_file_write(path, bytes, size_bytes, force, err);
  laci_free(bytes);
  laci_label_clear(&drawing);
  laci_label_clear(&rows);
  return st;
}
