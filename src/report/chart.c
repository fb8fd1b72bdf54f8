/* SPDX-License-Identifier: Apache-2.0
 * A chart is one graphviz node whose label is a table: a row a bar, the bar a coloured cell of that
 * width. Text is measured by graphviz, so columns fit whatever is written in them. Escaping is
 * label.h's, layout and formats are render.h's. */
#include "report/chart.h"

#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "report/label.h"
#include "report/render.h"

enum {
  LONGEST_BAR = 320,
  BAR_HEIGHT = 12,
  NAME_HEAD = 14,
  NAME_TAIL = 32,
  LINE_WIDTH = 110,
  N_COLUMNS = 4 /* name, bar, text, note */
};

/* Told apart by most eyes, and in grey by the order of the bars. The last is everything else's. */
static const char *const colours[] = {"#4477AA", "#EE9944", "#559955", "#AA3377", "#BBAA33",
                                      "#66BBDD", "#CC5555", "#775544", "#AAAAAA"};
enum { N_COLOURS = sizeof colours / sizeof *colours };

static const char *colour_of(int kind) {
  return colours[kind >= 0 && kind < N_COLOURS - 1 ? kind : N_COLOURS - 1];
}

static bool is_inside_character(char c) { return ((unsigned char)c & 0xC0) == 0x80; }

/* "/encoder/layers/.../conv1/Conv": the end tells more than the middle. */
static void write_name(laci_label *label, const char *name) {
  size_t n = strlen(name), head = NAME_HEAD;
  char part[NAME_HEAD + 1];
  if (n > NAME_HEAD + NAME_TAIL + 3) {
    const char *tail = name + n - NAME_TAIL;
    while (head > 0 && is_inside_character(name[head])) head--;
    while (is_inside_character(*tail)) tail++;
    memcpy(part, name, head);
    part[head] = 0;
    laci_label_text(label, part, LINE_WIDTH);
    laci_label_markup(label, "...");
    name = tail;
  }
  laci_label_text(label, name, LINE_WIDTH);
}

static void write_head(laci_label *label, const laci_chart *chart) {
  laci_label_markup(label, "<TR><TD COLSPAN=\"%d\" ALIGN=\"LEFT\"><FONT POINT-SIZE=\"18\"><B>",
                    N_COLUMNS);
  laci_label_text(label, chart->title, LINE_WIDTH);
  laci_label_markup(label,
                    "</B></FONT></TD></TR><TR><TD COLSPAN=\"%d\" ALIGN=\"LEFT\" "
                    "BALIGN=\"LEFT\">",
                    N_COLUMNS);
  laci_label_text(label, chart->summary, LINE_WIDTH);
  laci_label_markup(label, "</TD></TR>");
}

static void write_gap(laci_label *label) {
  laci_label_markup(label, "<TR><TD COLSPAN=\"%d\" HEIGHT=\"%d\"></TD></TR>", N_COLUMNS,
                    BAR_HEIGHT);
}

static void write_cell(laci_label *label, int width, const char *colour) {
  if (width < 1) return;
  laci_label_markup(label, "<TD FIXEDSIZE=\"TRUE\" WIDTH=\"%d\" HEIGHT=\"%d\"%s%s%s></TD>", width,
                    BAR_HEIGHT, colour ? " BGCOLOR=\"" : "", colour ? colour : "",
                    colour ? "\"" : "");
}

/* The cell of a bar. A cell as wide as what is missing goes behind it, or graphviz would centre it.
 * share < 0: no bar; else at least a line. */
static void write_bar(laci_label *label, double share, const char *colour) {
  int width = share < 0 ? 0 : (int)(LONGEST_BAR * share);
  if (share >= 0 && width < 1) width = 1;
  if (width > LONGEST_BAR) width = LONGEST_BAR;
  laci_label_markup(label,
                    "<TD ALIGN=\"LEFT\"><TABLE BORDER=\"0\" CELLBORDER=\"0\" "
                    "CELLSPACING=\"0\" CELLPADDING=\"0\"><TR>");
  write_cell(label, width, colour);
  write_cell(label, LONGEST_BAR - width, NULL);
  laci_label_markup(label, "</TR></TABLE></TD>");
}

static void write_text(laci_label *label, const char *text, const char *note) {
  laci_label_markup(label, "<TD ALIGN=\"LEFT\">");
  laci_label_text(label, text, LINE_WIDTH);
  laci_label_markup(label, "</TD><TD ALIGN=\"LEFT\">");
  if (note && *note) {
    laci_label_markup(label, "<FONT POINT-SIZE=\"9\" COLOR=\"#5E5E5E\">");
    laci_label_text(label, note, LINE_WIDTH);
    laci_label_markup(label, "</FONT>");
  }
  laci_label_markup(label, "</TD></TR>");
}

/* The legend: kinds as bars of their share of the whole. Those without a colour of their own have
 * the last one. */
static void write_kinds(laci_label *label, const laci_chart *chart) {
  for (int kind = 0; kind < chart->n_kinds; kind++) {
    laci_label_markup(label, "<TR><TD ALIGN=\"RIGHT\">");
    write_name(label, chart->kinds[kind].name);
    laci_label_markup(label, "</TD>");
    write_bar(label, chart->kinds[kind].share, colour_of(kind));
    write_text(label, chart->kinds[kind].text, chart->kinds[kind].note);
  }
}

static void write_bars(laci_label *label, const laci_chart *chart) {
  double most = 0;
  for (int at = 0; at < chart->n_bars; at++) {
    const laci_chart_bar *bar = &chart->bars[at];
    if (bar->kind >= 0 && bar->value > most) most = bar->value;
  }
  for (int at = 0; at < chart->n_bars; at++) {
    const laci_chart_bar *bar = &chart->bars[at];
    double share = most > 0 && bar->value > 0 ? bar->value / most : 0;
    laci_label_markup(label, "<TR><TD ALIGN=\"RIGHT\">");
    write_name(label, bar->label);
    laci_label_markup(label, "</TD>");
    write_bar(label, bar->kind < 0 ? -1 : share, colour_of(bar->kind));
    write_text(label, bar->text, bar->note);
  }
}

static void write_table(laci_label *label, const laci_chart *chart) {
  laci_label_markup(label,
                    "<TABLE BORDER=\"0\" CELLBORDER=\"0\" CELLSPACING=\"2\" CELLPADDING=\"1\">");
  write_head(label, chart);
  write_gap(label);
  write_kinds(label, chart);
  write_gap(label);
  write_bars(label, chart);
  laci_label_markup(label, "</TABLE>");
}

/* cgraph takes texts as char * but copies them. */
static bool set(Agraph_t *drawing, int kind, const char *key, const char *text) {
  return agattr(drawing, kind, (char *)key, (char *)text) != NULL;
}

static lac_status draw(const laci_chart *chart, laci_picture picture, char **bytes,
                       size_t *size_bytes, lac_error *err) {
  laci_label label = {0};
  write_table(&label, chart);
  Agraph_t *drawing = agopen("chart", Agdirected, NULL);
  bool whole =
      drawing && !label.failed && set(drawing, AGRAPH, "charset", "UTF-8") &&
      set(drawing, AGRAPH, "bgcolor", "#FFFFFF") && set(drawing, AGNODE, "shape", "plain") &&
      set(drawing, AGNODE, "fontname", "Helvetica") && set(drawing, AGNODE, "fontsize", "11") &&
      set(drawing, AGNODE, "fontcolor", "#1A1A1A") && set(drawing, AGNODE, "label", "");
  Agnode_t *node = whole ? agnode(drawing, "chart", 1) : NULL;
  char *html = node ? agstrdup_html(drawing, label.text) : NULL;
  lac_status st = html ? LAC_OK : laci_fail_memory(err, "a chart");
  if (!st) {
    agsafeset(node, "label", html, "");
    st = laci_render(drawing, picture, bytes, size_bytes, err);
  }
  if (drawing) agclose(drawing);
  laci_label_clear(&label);
  return st;
}

lac_status laci_chart_write(const laci_chart *chart, const char *path, bool force, lac_error *err) {
  laci_picture picture;
  char *bytes = NULL;
  size_t size_bytes = 0;
  lac_status st = laci_picture_of(path, &picture, err);
  if (st) return st;
  laci_render_lock();
  st = draw(chart, picture, &bytes, &size_bytes, err);
  laci_render_unlock();
  if (!st) st = laci_file_write(path, bytes, size_bytes, force, err);
  laci_free(bytes);
  return st;
}
