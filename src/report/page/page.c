/* SPDX-License-Identifier: Apache-2.0
 * Writes an HTML page: the parts of its template in their order, and between them the escaped data.
 *
 * In an element <script type="application/json"> only the texts "</script" and "<!--" end the data
 * early. Both are avoided by writing < > & as \u003c and so on. JSON allows this in texts, the only
 * places where these characters occur. U+2028 and U+2029 are escaped, too, since a reader that
 * takes JSON for JavaScript would see them as ends of lines. */
#include "report/page/page.h"

#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/writer.h"
#include "graph/graph.h"
#include "lacuna/version.h"
#include "report/plot.h"

/* Parts of the page's template (data.S): bytes without a zero at their end. */
extern const char laci_page_head[], laci_page_head_end[];
extern const char laci_page_style[], laci_page_style_end[];
extern const char laci_page_body[], laci_page_body_end[];
extern const char laci_page_script[], laci_page_script_end[];
extern const char laci_page_tail[], laci_page_tail_end[];

/* ---- JSON ---- */

lac_status laci_page_about_json(const laci_page_about *about, char **text, lac_error *err) {
  laci_json_writer w = {.whole = true};
  json_t *root = json_object(), *warnings = json_array();
  for (int at = 0; at < about->n_warnings; at++)
    laci_json_append(&w, warnings, laci_json_text(&w, about->warnings[at]));
  laci_json_add(&w, root, "lacuna", json_string(lac_version()));
  laci_json_add(&w, root, "command", laci_json_text(&w, about->command));
  laci_json_add(&w, root, "no_drawing", laci_json_text(&w, about->no_drawing));
  laci_json_add(&w, root, "warnings", warnings);
  return laci_json_finish(&w, root, JSON_COMPACT, "the page", text, err);
}

static json_t *page_node_json(laci_json_writer *w, const laci_node *node, int box, bool is_line,
                              const laci_plot_node *drawn) {
  json_t *object = json_object();
  laci_json_add(w, object, "box", json_sprintf("node%d", box));
  if (is_line) laci_json_add(w, object, "line", json_true());
  laci_json_add(w, object, "name", laci_json_text(w, node->name));
  laci_json_add(w, object, "op", laci_json_text(w, node->type));
  laci_json_add(w, object, "role", json_string(laci_plot_role(drawn->colour)));
  laci_json_add(w, object, "reason", laci_json_text(w, drawn->reason));
  return object;
}

lac_status laci_page_graph_json(const laci_graph *graph, const laci_plot *plot, char **text,
                                lac_error *err) {
  laci_json_writer w = {.whole = true};
  int *box = laci_alloc((size_t)graph->n_nodes + 1, sizeof *box);
  bool *line = laci_alloc((size_t)graph->n_nodes + 1, sizeof *line);
  lac_status st = box && line ? laci_plot_find_boxes(graph, plot, box, line, err)
                              : laci_fail_memory(err, "the page");
  if (!st) {
    json_t *root = json_object(), *nodes = json_array();
    for (int id = 0; id < graph->n_nodes; id++) {
      laci_json_append(&w, nodes,
                       page_node_json(&w, &graph->nodes[id], box[id], line[id], &plot->nodes[id]));
    }
    laci_json_add(&w, root, "nodes", nodes);
    st = laci_json_finish(&w, root, JSON_COMPACT, "the page", text, err);
  }
  laci_free(box);
  laci_free(line);
  return st;
}

/* ---- The file ---- */

/* The HTML file that is being written. After a failure nothing more is written. */
typedef struct sink {
  laci_writer *file;
  lac_error *err;
  lac_status status;
} sink;

static void write_bytes(sink *out, const char *bytes, size_t n) {
  if (!out->status && n) out->status = laci_writer_append(out->file, bytes, n, out->err);
}

static void write_text(sink *out, const char *text) { write_bytes(out, text, strlen(text)); }

static void write_template_part(sink *out, const char *begin, const char *end) {
  write_bytes(out, begin, (size_t)(end - begin));
}

/* Returns the text that replaces the character at `at`; NULL: it is not replaced. *n: number of
 * bytes of the character. */
static const char *escape_in_json(const char *at, size_t *n) {
  *n = 1;
  if (*at == '<') return "\\u003c";
  if (*at == '>') return "\\u003e";
  if (*at == '&') return "\\u0026";
  if (strncmp(at, "\xE2\x80\xA8", 3) != 0 && strncmp(at, "\xE2\x80\xA9", 3) != 0) return NULL;
  *n = 3;
  return at[2] == '\xA8' ? "\\u2028" : "\\u2029";
}

static const char *escape_in_html(const char *at, size_t *n) {
  *n = 1;
  if (*at == '<') return "&lt;";
  if (*at == '>') return "&gt;";
  return *at == '&' ? "&amp;" : NULL;
}

static void write_escaped_text(sink *out, const char *text,
                               const char *(*escape)(const char *at, size_t *n)) {
  const char *plain = text;
  while (*text) {
    size_t n = 1;
    const char *instead = escape(text, &n);
    if (instead) {
      write_bytes(out, plain, (size_t)(text - plain));
      write_text(out, instead);
      plain = text + n;
    }
    text += n;
  }
  write_bytes(out, plain, (size_t)(text - plain));
}

static void write_json_element(sink *out, const char *id, const char *json) {
  if (!json) return;
  write_text(out, "<script type=\"application/json\" id=\"");
  write_text(out, id);
  write_text(out, "\">");
  write_escaped_text(out, json, escape_in_json);
  write_text(out, "</script>\n");
}

/* Writes the drawing without its XML declaration and document type, which only a file of its own
 * needs. */
static void write_svg(sink *out, const char *svg, size_t n) {
  static const char start[] = "<svg";
  for (size_t at = 0; at + sizeof start <= n; at++) {
    if (memcmp(svg + at, start, sizeof start - 1) != 0) continue;
    write_text(out, "<template id=\"drawing\">");
    write_bytes(out, svg + at, n - at);
    write_text(out, "</template>\n");
    return;
  }
}

static void write_page(sink *out, const laci_page *page) {
  write_template_part(out, laci_page_head, laci_page_head_end);
  write_text(out, "<title>");
  write_escaped_text(out, page->title, escape_in_html);
  write_text(out, "</title>\n<style>\n");
  write_template_part(out, laci_page_style, laci_page_style_end);
  write_text(out, "</style>\n");
  write_template_part(out, laci_page_body, laci_page_body_end);
  write_json_element(out, "data-report", page->report);
  write_json_element(out, "data-about", page->about);
  write_json_element(out, "data-layers", page->layers);
  write_json_element(out, "data-log", page->log);
  write_json_element(out, "data-graph", page->graph);
  if (page->svg) write_svg(out, page->svg, page->svg_bytes);
  write_text(out, "<script>\n");
  write_template_part(out, laci_page_script, laci_page_script_end);
  write_text(out, "</script>\n");
  write_template_part(out, laci_page_tail, laci_page_tail_end);
}

lac_status laci_page_write(const laci_page *page, const char *path, bool force, lac_error *err) {
  const laci_write_options options = {.force = force};
  sink out = {.err = err};
  lac_status st = laci_writer_open(path, &options, &out.file, err);
  if (st) return st;
  write_page(&out, page);
  st = out.status;
  if (!st) st = laci_writer_finish(out.file, err);
  if (!st) st = laci_writer_commit(out.file, err);
  laci_writer_destroy(out.file);
  return st;
}
