/* SPDX-License-Identifier: Apache-2.0
 * Draws a network as a graph: one box for each node, from the inputs down to the outputs.
 *
 * Parameters that belong to a node (weights, normalization) are lines in its box. Other constants
 * are small gray boxes, one for each reader, so that a shared constant causes no long edges. Nodes
 * that only compute constants (shape arithmetic, weights being dequantized) are gray lines in the
 * boxes of the nodes that read them. Every box also says its role in words, for readers who cannot
 * tell the colors apart. label.h escapes texts; render.h lays out and writes the formats. The text
 * in graphviz' language is written here, so that a .dot file needs no graphviz. */
#include "report/plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/writer.h"
#include "graph/op.h"
#include "report/fold.h"
#include "report/label.h"
#include "report/render.h"
#include "report/text_width.h"
#include "tensor/buf.h"

enum {
  LARGE = 60, /* networks with more nodes than this are folded (fold.h) */
  NAME_WIDTH = 48,
  TEXT_WIDTH = 58,
  PARAMETER_WIDTH = 64,
  REASON_WIDTH = 36, /* number of characters in a line that gives a reason, in a large network */
  SHOWN_ELEMENTS = 4,
  MIN_SPAN = 12,
  MAX_PASSED = 3,  /* edges are drawn as long as they pass at most this many nodes, on average for
                      each node */
  MAX_FOLDED = 24, /* maximum number of folded nodes that a box lists */
  MAX_LINES = 24,  /* maximum number of lines of one kind in a box, so that its text is bounded for
                      networks of any size */
  NAME_SIZE = 10,  /* font size in points */
  SMALL_SIZE = 8,
  HEAD_SIZE = 11
};

static const struct style {
  const char *fill, *line, *tag, *meaning;
} styles[] = {
    [LACI_PLOT_GREEN] = {"#C9E8CB", "#2E7D32", "layer",
                         "a layer that is, or may be, permuted or pruned"},
    [LACI_PLOT_YELLOW] = {"#FFF7C2", "#6B5C00", "passes", "passes channel orders through"},
    [LACI_PLOT_ORANGE] = {"#FFDDB0", "#8F4400", "follows", "follows with parameters of its own"},
    [LACI_PLOT_RED] = {"#FFCFCB", "#B71C1C", "blocks",
                       "blocks orders, or a layer that was not pruned"},
    [LACI_PLOT_GREY] = {"#E6E6E6", "#5E5E5E", "constant", "constants and what computes them"},
};
enum { N_STYLES = sizeof styles / sizeof *styles };

const char *laci_plot_role(laci_plot_colour colour) { return styles[colour].tag; }

/* The state of a drawing. */
typedef struct canvas {
  const laci_graph *graph;
  const laci_plot *plot;
  laci_label drawing; /* the text of the drawing in graphviz' language */
  laci_label label;   /* rows of the box that is being written */
  bool *has_box;      /* [n_values] true: the value is a network input whose box is drawn already */
  bool *folded;       /* [n_nodes] true: the node only computes constants, and is a line in its
                         reader's box */
  laci_fold fold;     /* which nodes are drawn in the boxes of other nodes: copies of blocks, and
                         attached nodes */
  bool is_folded;     /* true: this drawing is folded: attached nodes are lines, and copies are
                         drawn once */
  int *depth;         /* [n_nodes] number of drawn nodes on the longest path to each node */
  int *before;        /* [n_nodes] for nodes on the longest path of the network, the node before it
                         on that path; else OFF_PATH */
  int max_span;       /* an edge over more levels than this is not drawn, but is a line in its
                         reader's box */
  int n_small;        /* number of gray boxes of constants that are drawn so far */
} canvas;

enum { PATH_BEGINS = -1, OFF_PATH = -2 };

/* A box's name in graphviz' language: its kind, followed by a number. */
typedef struct box {
  const char *kind;
  int id;
} box;

/* Writes the label of a box in graphviz' language: a table of the rows in c->label. It is wide
 * enough in any font. */
static void write_label(canvas *c) {
  laci_label_add_markup(&c->drawing,
                        "label=<<TABLE BORDER=\"0\" CELLBORDER=\"0\" CELLSPACING=\"0\" "
                        "CELLPADDING=\"1\" WIDTH=\"%.0f\">",
                        ceil(c->label.widest) + 2);
  laci_label_append_label(&c->drawing, &c->label);
  laci_label_add_markup(&c->drawing, "</TABLE>>");
}

/* Writes a box with the rows in c->label. of: its name. more: further attributes, each after a
 * comma. */
static void write_box(canvas *c, box of, const struct style *style, const char *more) {
  laci_label_add_markup(&c->drawing, "  %s%d [", of.kind, of.id);
  write_label(c);
  if (c->plot->for_page)
    laci_label_add_markup(&c->drawing, ", id=\"%s%d\", class=\"%s\"", of.kind, of.id,
                          style->tag ? style->tag : "end");
  laci_label_add_markup(&c->drawing, ", fillcolor=\"%s\", color=\"%s\"%s];\n", style->fill,
                        style->line, more);
}

static void write_edge(canvas *c, box from, box to, const char *attributes) {
  laci_label_add_markup(&c->drawing, "  %s%d -> %s%d%s;\n", from.kind, from.id, to.kind, to.id,
                        attributes);
}

/* Returns the last part of a name with dots or slashes: "weight" for "layer1.0.conv1.weight". It is
 * enough in the box of the layer. */
static const char *last_part_of_name(const char *name) {
  const char *tail = name;
  for (const char *at = name; *at; at++) {
    if (strchr("./:", *at) && at[1]) tail = at + 1;
  }
  return tail;
}

static void begin_label_row(canvas *c) {
  laci_label_begin_line(&c->label);
  laci_label_add_markup(&c->label, "<TR><TD COLSPAN=\"2\" ALIGN=\"LEFT\" BALIGN=\"LEFT\">");
}
static void end_label_row(canvas *c) { laci_label_add_markup(&c->label, "</TD></TR>"); }
static void begin_table(canvas *c) {
  laci_label_reset(&c->label);
  laci_label_set_font(&c->label, NAME_SIZE, false);
}
static void write_ellipsis_row(canvas *c) {
  laci_label_add_markup(&c->label, "<TR><TD COLSPAN=\"2\" ALIGN=\"LEFT\">...</TD></TR>");
}

/* Is this stored tensor a parameter of the node, which is a line in its box? Other constants, which
 * are plain operands, have boxes of their own. */
static bool is_parameter_line(const laci_node *node, const laci_stored *stored) {
  bool has_parameters =
      node->op && (node->op->role == LACI_ROLE_ALLOW || node->op->role == LACI_ROLE_INFER);
  return has_parameters && stored->shape.rank != 0;
}

/* Writes one line for all parameters that have the shape of input number `first`: "weight, bias
 * [64]". */
static void write_parameter_line(canvas *c, const laci_node *node, int first) {
  char line[512], shape[128];
  const laci_stored *of = laci_node_find_stored(c->graph, node, first);
  size_t used = 0;
  for (int port = first; port < node->n_inputs && used < 300; port++) {
    const laci_stored *stored = laci_node_find_stored(c->graph, node, port);
    if (!stored || !is_parameter_line(node, stored) ||
        !laci_shape_equal(&stored->shape, &of->shape))
      continue;
    int n = snprintf(line + used, sizeof line - used, "%s%.80s", used ? ", " : "",
                     last_part_of_name(stored->name));
    if (n > 0) used += (size_t)n;
  }
  (void)snprintf(line + used, sizeof line - used, "  %s",
                 laci_shape_text(&of->shape, shape, sizeof shape));
  begin_label_row(c);
  laci_label_add_text(&c->label, line, PARAMETER_WIDTH);
  end_label_row(c);
}

static void write_parameter_lines(canvas *c, const laci_node *node) {
  int n_lines = 0;
  for (int port = 0; port < node->n_inputs && n_lines <= MAX_LINES; port++) {
    const laci_stored *stored = laci_node_find_stored(c->graph, node, port);
    bool shown = !stored || !is_parameter_line(node, stored);
    for (int before = 0; before < port && !shown; before++) {
      const laci_stored *other = laci_node_find_stored(c->graph, node, before);
      shown = other && is_parameter_line(node, other) &&
              laci_shape_equal(&stored->shape, &other->shape);
    }
    if (shown) continue;
    if (n_lines++ == MAX_LINES) write_ellipsis_row(c);
    else write_parameter_line(c, node, port);
  }
}

static void write_output_shapes(canvas *c, const laci_node *node) {
  char shape[128];
  int n_lines = 0;
  for (int i = 0; i < node->n_outputs; i++) {
    if (node->outputs[i] < 0) continue;
    const laci_shape *out = &c->graph->values[node->outputs[i]].type.shape;
    if (out->rank < 0) continue;
    if (n_lines++ == MAX_LINES) {
      write_ellipsis_row(c);
      return;
    }
    begin_label_row(c);
    laci_label_add_text(&c->label, "\u2192 ", TEXT_WIDTH);
    laci_label_add_text(&c->label, laci_shape_text(out, shape, sizeof shape), TEXT_WIDTH);
    end_label_row(c);
  }
}

/* Does the node have a box of its own? */
static bool has_own_box(const canvas *c, int id) { return !c->folded[id] && c->fold.box[id] == id; }

/* Returns the node in whose box the producer of a value is drawn; -1: no node computes the
 * value. */
static int box_of_producer(const canvas *c, int value) {
  int producer = value >= 0 ? c->graph->values[value].producer : -1;
  return producer >= 0 ? c->fold.box[producer] : -1;
}

/* Returns the number of levels that the edge from a value's producer down to `node`, which reads
 * it, passes. Returns 0 if this edge is not drawn: one of the two nodes is folded, or there is no
 * producer. */
static int count_levels_of_edge(const canvas *c, int node, int value) {
  int producer = box_of_producer(c, value);
  bool drawn = producer >= 0 && !c->folded[producer] && has_own_box(c, node);
  return drawn ? c->depth[node] - c->depth[producer] : 0;
}

static int find_read_value(const laci_node *node, int i) {
  return i < node->n_inputs ? node->inputs[i] : node->captures[i - node->n_inputs];
}

/* Returns the producer of value number i that the node reads, if that producer is folded; else
 * -1. */
static int find_folded_producer(const canvas *c, const laci_node *node, int i) {
  int value = find_read_value(node, i);
  int producer = value >= 0 ? c->graph->values[value].producer : -1;
  return producer >= 0 && c->folded[producer] ? producer : -1;
}

static bool computes_only_constants(const canvas *c, int id) {
  const laci_node *node = &c->graph->nodes[id];
  laci_plot_colour colour = c->plot->nodes[id].colour;
  if (colour == LACI_PLOT_GREY) return true;
  if (colour == LACI_PLOT_RED || !node->op || node->op->role == LACI_ROLE_ALLOW) return false;
  /* a node without inputs is no constant: it may compute different values in each run, such as
   * random numbers */
  if (node->n_inputs + node->n_captures == 0) return false;
  for (int i = 0; i < node->n_inputs + node->n_captures; i++) {
    int value = find_read_value(node, i);
    if (value < 0 || c->graph->values[value].stored >= 0) continue;
    if (find_folded_producer(c, node, i) < 0) return false;
  }
  return true;
}

/* Chooses folded nodes: those that only compute constants, and are drawn as lines in other boxes.
 * Nodes are in topological order. A node without readers, or whose output is one of the network's,
 * has its own box. */
static lac_status choose_folded_nodes(canvas *c, lac_error *err) {
  const laci_graph *graph = c->graph;
  bool *has_reader = laci_alloc((size_t)graph->n_nodes, sizeof *has_reader);
  if (!has_reader) return laci_fail_memory(err, "a drawing");
  for (int id = 0; id < graph->n_nodes; id++) {
    const laci_node *node = &graph->nodes[id];
    c->folded[id] = computes_only_constants(c, id);
    for (int i = 0; i < node->n_inputs + node->n_captures; i++) {
      int value = find_read_value(node, i);
      int producer = value >= 0 ? graph->values[value].producer : -1;
      if (producer >= 0) has_reader[producer] = true;
    }
  }
  for (int id = 0; id < graph->n_nodes; id++) c->folded[id] &= has_reader[id];
  for (int i = 0; i < graph->n_outputs; i++) {
    int producer = graph->values[graph->outputs[i]].producer;
    if (producer >= 0) c->folded[producer] = false;
  }
  laci_free(has_reader);
  return LAC_OK;
}

static void compute_node_depths(canvas *c) {
  for (int id = 0; id < c->graph->n_nodes; id++) {
    if (!has_own_box(c, id)) continue;
    const laci_node *node = &c->graph->nodes[id];
    for (int i = 0; i < node->n_inputs + node->n_captures; i++) {
      int producer = box_of_producer(c, find_read_value(node, i));
      if (producer >= 0 && !c->folded[producer] && c->depth[producer] >= c->depth[id])
        c->depth[id] = c->depth[producer] + 1;
    }
  }
}

/* Returns the number of levels that all drawn edges pass together. The time for the layout depends
 * on it. */
static int64_t count_passed_levels(const canvas *c) {
  int64_t total = 0;
  for (int id = 0; id < c->graph->n_nodes; id++) {
    const laci_node *node = &c->graph->nodes[id];
    for (int i = 0; i < node->n_inputs + node->n_captures; i++) {
      int span = count_levels_of_edge(c, id, find_read_value(node, i));
      if (span > 1 && span <= c->max_span) total += span - 1;
    }
  }
  return total;
}

/* Chooses c->max_span, the length of the longest edge that is drawn. DenseNet has hundreds of edges
 * that pass dozens of nodes: the layout would be slow, and nobody could follow the edges. In such a
 * network the longest edges become lines of text, until the remaining ones together pass at most
 * MAX_PASSED levels for each node. */
static void choose_longest_edge(canvas *c) {
  c->max_span = 3 << 18;
  while (c->max_span > MIN_SPAN && count_passed_levels(c) > (int64_t)MAX_PASSED * c->graph->n_nodes)
    c->max_span /= 2;
}

/* Finds the longest path through the network. It is drawn as one straight line, so that the drawing
 * is a single column. */
static void find_longest_path(canvas *c) {
  int at = -1;
  for (int id = 0; id < c->graph->n_nodes; id++) {
    c->before[id] = OFF_PATH;
    if (has_own_box(c, id) && (at < 0 || c->depth[id] > c->depth[at])) at = id;
  }
  while (at >= 0) {
    const laci_node *node = &c->graph->nodes[at];
    int before = PATH_BEGINS;
    for (int i = 0; i < node->n_inputs + node->n_captures; i++) {
      int value = find_read_value(node, i);
      if (count_levels_of_edge(c, at, value) == 1) before = box_of_producer(c, value);
    }
    c->before[at] = before;
    at = before;
  }
}

/* Writes the names of the nodes whose edges to this node are too long to be drawn. */
static void write_undrawn_sources(canvas *c, int id) {
  const laci_node *node = &c->graph->nodes[id];
  int n_lines = 0;
  for (int i = 0; i < node->n_inputs + node->n_captures; i++) {
    int value = find_read_value(node, i);
    if (count_levels_of_edge(c, id, value) <= c->max_span) continue;
    if (n_lines++ == MAX_LINES) {
      write_ellipsis_row(c);
      return;
    }
    begin_label_row(c);
    laci_label_add_text(&c->label, "\u2190 ", NAME_WIDTH);
    laci_label_add_text(&c->label, c->graph->nodes[box_of_producer(c, value)].name, NAME_WIDTH);
    end_label_row(c);
  }
}

/* The folded nodes that a box reads, directly or through other folded nodes; each is listed
 * once. */
typedef struct fold_list {
  int seen[MAX_FOLDED], n;
  bool cut;
} fold_list;

static void write_folded_node_line(canvas *c, const laci_node *node) {
  char line[512];
  size_t used = (size_t)snprintf(line, sizeof line, "%.60s %.300s", node->type, node->name);
  for (int i = 0; i < node->n_inputs && used < 400; i++) {
    const laci_stored *stored = laci_node_find_stored(c->graph, node, i);
    int n = stored ? snprintf(line + used, sizeof line - used, ", %.80s",
                              last_part_of_name(stored->name))
                   : 0;
    if (n > 0) used += (size_t)n;
  }
  begin_label_row(c);
  laci_label_add_markup(&c->label, "<FONT POINT-SIZE=\"%d\" COLOR=\"%s\">", SMALL_SIZE,
                        styles[LACI_PLOT_GREY].line);
  laci_label_set_font(&c->label, SMALL_SIZE, false);
  laci_label_add_text(&c->label, line, PARAMETER_WIDTH);
  laci_label_set_font(&c->label, NAME_SIZE, false);
  laci_label_add_markup(&c->label, "</FONT>");
  end_label_row(c);
}

static void write_folded_node_lines(canvas *c, const laci_node *node, fold_list *fold) {
  for (int i = 0; i < node->n_inputs + node->n_captures; i++) {
    int source = find_folded_producer(c, node, i);
    bool known = source < 0;
    for (int k = 0; k < fold->n && !known; k++) known = fold->seen[k] == source;
    if (known) continue;
    if (fold->n == MAX_FOLDED) {
      fold->cut = true;
      return;
    }
    fold->seen[fold->n++] = source;
    write_folded_node_line(c, &c->graph->nodes[source]);
    write_folded_node_lines(c, &c->graph->nodes[source],
                            fold); /* the recursion is at most MAX_FOLDED deep */
  }
}

static const char *role_of_node(const laci_node *node, laci_plot_colour colour) {
  bool layer = node->op && node->op->role == LACI_ROLE_ALLOW;
  if (colour == LACI_PLOT_RED && layer) return "not pruned";
  if (colour == LACI_PLOT_GREY) return "shapes";
  return styles[colour].tag;
}

static void write_node_heading(canvas *c, const laci_node *node, laci_plot_colour colour) {
  laci_label *label = &c->label;
  laci_label_add_markup(label, "<TR><TD ALIGN=\"LEFT\"><B>");
  laci_label_set_font(label, NAME_SIZE, true);
  laci_label_add_text(label, node->type, NAME_WIDTH);
  laci_label_add_markup(label, "</B></TD><TD ALIGN=\"RIGHT\"><FONT POINT-SIZE=\"%d\" COLOR=\"%s\">",
                        SMALL_SIZE, styles[colour].line);
  laci_label_set_font(label, SMALL_SIZE, false);
  label->line += 2 * SMALL_SIZE; /* space between the node's type and its tag */
  laci_label_add_text(label, role_of_node(node, colour), NAME_WIDTH);
  laci_label_add_markup(label, "</FONT></TD></TR>");
  laci_label_set_font(label, NAME_SIZE, false);
}

/* Returns the repeated block whose first copy contains the node; NULL: there is none. */
static const laci_fold_block *find_block_of_node(const canvas *c, int id) {
  for (int at = 0; at < c->fold.n_order; at++)
    if (c->fold.order[at] == id) return laci_fold_block_at(&c->fold, at);
  return NULL;
}

/* Is the node in the first copy of a block that repeats? */
static bool is_in_repeated_block(const canvas *c, int id) {
  return find_block_of_node(c, id) != NULL;
}

/* Returns the last node that is drawn in this node's box. Its outputs are those of the box. */
static int find_last_node_in_box(const canvas *c, int id) {
  int last = id;
  for (int at = 0; at < c->fold.n_order; at++) {
    int other = c->fold.order[at];
    if (c->fold.box[other] == id && !c->fold.copy[other]) last = other;
  }
  return last;
}

/* Writes a line with the other nodes that are drawn in this node's box: "+ BatchNormalization,
 * Relu". */
static void write_attached_node_lines(canvas *c, int id) {
  char line[512];
  size_t used = 0;
  for (int at = 0; at < c->fold.n_order && used < 400; at++) {
    int other = c->fold.order[at];
    if (other == id || c->fold.box[other] != id || c->fold.copy[other]) continue;
    int n = snprintf(line + used, sizeof line - used, "%s%.60s", used ? ", " : "+ ",
                     c->graph->nodes[other].type);
    if (n > 0) used += (size_t)n;
  }
  if (!used) return;
  begin_label_row(c);
  laci_label_add_text(&c->label, line, TEXT_WIDTH);
  end_label_row(c);
}

/* Writes a short form of the node's name: without the part that its frame already shows, and
 * without its operator at the end. In the frame of "/layer1/layer1.1",
 * "/layer1/layer1.1/conv1/Conv" becomes "conv1". */
static void make_compact_name(const canvas *c, int id, char *text, size_t size) {
  const laci_node *node = &c->graph->nodes[id];
  const laci_fold_block *block = find_block_of_node(c, id);
  const char *name = node->name;
  char frame[256] = "";
  if (block) laci_fold_write_copy_name(c->graph, &c->fold, block, 0, frame, sizeof frame);
  size_t n_frame = strlen(frame), n_type = strlen(node->type);
  if (strncmp(name, frame, n_frame) == 0) name += n_frame;
  while (*name && strchr("./:_", *name)) name++;
  size_t n = strlen(name);
  if (n > n_type && strcmp(name + n - n_type, node->type) == 0 &&
      strchr("./:_", name[n - n_type - 1]))
    n -= n_type + 1;
  else if (n == n_type && strcmp(name, node->type) == 0) n = 0;
  (void)snprintf(text, size, "%.*s", (int)n, name);
}

/* Writes the shapes of the first parameter and of the first output: "[64, 64, 1, 1] \u2192 [1, 64,
 * 56, 56]". */
static void write_compact_shapes(canvas *c, int id) {
  char from[128] = "", to[128] = "";
  const laci_node *node = &c->graph->nodes[id],
                  *last = &c->graph->nodes[find_last_node_in_box(c, id)];
  for (int i = 0; i < node->n_inputs && !*from; i++) {
    const laci_stored *stored = laci_node_find_stored(c->graph, node, i);
    if (stored && is_parameter_line(node, stored))
      laci_shape_text(&stored->shape, from, sizeof from);
  }
  if (last->n_outputs > 0 && last->outputs[0] >= 0) {
    const laci_shape *shape = &c->graph->values[last->outputs[0]].type.shape;
    if (shape->rank >= 0) laci_shape_text(shape, to, sizeof to);
  }
  if (!*from && !*to) return;
  begin_label_row(c);
  laci_label_add_text(&c->label, from, TEXT_WIDTH);
  laci_label_add_text(&c->label, !*to ? "" : *from ? " \u2192 " : "\u2192 ", TEXT_WIDTH);
  laci_label_add_text(&c->label, to, TEXT_WIDTH);
  end_label_row(c);
}

/* Writes the label of a node's box in a large network. It has only three lines, so that many boxes
 * fit on a page. */
static void write_compact_label(canvas *c, int id, const laci_plot_node *info) {
  char name[512];
  laci_label *label = &c->label;
  begin_table(c);
  write_node_heading(c, &c->graph->nodes[id], info->colour);
  make_compact_name(c, id, name, sizeof name);
  if (*name) {
    begin_label_row(c);
    laci_label_add_text(label, name, NAME_WIDTH);
    end_label_row(c);
  }
  write_undrawn_sources(c, id);
  write_compact_shapes(c, id);
  write_attached_node_lines(c, id);
  const char *detail = is_in_repeated_block(c, id) ? info->kind : info->detail;
  if (detail && *detail) {
    begin_label_row(c);
    laci_label_add_text(label, detail, TEXT_WIDTH);
    end_label_row(c);
  }
}

static void write_reason_line(canvas *c, const char *reason) {
  if (!reason || !*reason || c->plot->for_page) return;
  begin_label_row(c);
  laci_label_add_markup(&c->label, "<FONT COLOR=\"%s\"><I>", styles[LACI_PLOT_RED].line);
  laci_label_add_text(&c->label, reason, c->is_folded ? REASON_WIDTH : TEXT_WIDTH);
  laci_label_add_markup(&c->label, "</I></FONT>");
  end_label_row(c);
}

static void write_node_label(canvas *c, int id, const laci_plot_node *info) {
  const laci_node *node = &c->graph->nodes[id];
  laci_label *label = &c->label;
  if (c->is_folded && !c->plot->details) {
    write_compact_label(c, id, info);
    write_reason_line(c, info->reason);
    return;
  }
  begin_table(c);
  write_node_heading(c, node, info->colour);
  begin_label_row(c);
  laci_label_add_text(label, node->name, NAME_WIDTH);
  end_label_row(c);
  write_undrawn_sources(c, id);
  write_output_shapes(c, &c->graph->nodes[find_last_node_in_box(c, id)]);
  write_parameter_lines(c, node);
  write_attached_node_lines(c, id);
  fold_list fold = {.n = 0};
  if (c->plot->details) write_folded_node_lines(c, node, &fold);
  if (fold.cut) write_ellipsis_row(c);
  const char *detail = c->is_folded && is_in_repeated_block(c, id) ? info->kind : info->detail;
  if (detail && *detail) {
    begin_label_row(c);
    laci_label_add_text(label, detail, TEXT_WIDTH);
    end_label_row(c);
  }
  write_reason_line(c, info->reason);
}

/* Writes the elements of a small constant: "[1, -1]". Returns false if it has too many. */
static bool format_small_constant(const laci_stored *stored, char *text, size_t size) {
  int64_t n = laci_shape_count(&stored->shape);
  bool is_float = laci_dtype_is_float(stored->dtype);
  if (n < 1 || n > SHOWN_ELEMENTS || !(is_float || laci_dtype_is_integer(stored->dtype)))
    return false;
  double f[SHOWN_ELEMENTS];
  int64_t i[SHOWN_ELEMENTS];
  if (is_float) laci_read_f64(stored->dtype, stored->bytes, 0, n, f);
  else laci_read_i64(stored->dtype, stored->bytes, 0, n, i);
  bool scalar = stored->shape.rank == 0;
  size_t used = (size_t)snprintf(text, size, "%s", scalar ? "" : "[");
  for (int64_t k = 0; k < n && used < size; k++) {
    const char *comma = k ? ", " : "";
    int wrote = is_float ? snprintf(text + used, size - used, "%s%.5g", comma, f[k])
                         : snprintf(text + used, size - used, "%s%lld", comma, (long long)i[k]);
    used += (size_t)wrote;
  }
  if (used < size) (void)snprintf(text + used, size - used, "%s", scalar ? "" : "]");
  return true;
}

/* Draws a small gray box for a constant, for one of its readers. */
static box draw_constant_box(canvas *c, const laci_stored *stored) {
  char text[256];
  begin_table(c);
  laci_label_set_font(&c->label, SMALL_SIZE, false);
  begin_label_row(c);
  laci_label_add_text(&c->label, last_part_of_name(stored->name), NAME_WIDTH);
  end_label_row(c);
  if (!format_small_constant(stored, text, sizeof text))
    laci_shape_text(&stored->shape, text, sizeof text);
  begin_label_row(c);
  laci_label_add_text(&c->label, text, NAME_WIDTH);
  end_label_row(c);
  box of = {"constant", c->n_small++};
  write_box(c, of, &styles[LACI_PLOT_GREY], ", fontsize=\"8\", style=\"filled\"");
  return of;
}

static box draw_input_or_output_box(canvas *c, const char *kind, int value) {
  static const struct style plain = {.fill = "#FFFFFF", .line = "#424242"};
  char shape[128];
  const laci_value *of = &c->graph->values[value];
  begin_table(c);
  begin_label_row(c);
  laci_label_add_markup(&c->label, "<B>");
  laci_label_set_font(&c->label, NAME_SIZE, true);
  laci_label_add_text(&c->label, kind, NAME_WIDTH);
  laci_label_add_markup(&c->label, "</B>");
  laci_label_set_font(&c->label, NAME_SIZE, false);
  end_label_row(c);
  begin_label_row(c);
  laci_label_add_text(&c->label, of->name, NAME_WIDTH);
  end_label_row(c);
  if (of->type.shape.rank >= 0) {
    begin_label_row(c);
    laci_label_add_text(&c->label, laci_shape_text(&of->type.shape, shape, sizeof shape),
                        NAME_WIDTH);
    end_label_row(c);
  }
  write_box(c, (box){kind, value}, &plain, "");
  return (box){kind, value};
}

/* Returns the box that a value comes from. For a constant, it draws a new box at each call; for a
 * network input, at the first call. */
static box find_or_draw_source_box(canvas *c, int value) {
  const laci_value *of = &c->graph->values[value];
  if (of->stored >= 0) return draw_constant_box(c, &c->graph->stored[of->stored]);
  if (of->producer >= 0) return (box){"node", c->fold.box[of->producer]};
  if (!c->has_box[value]) (void)draw_input_or_output_box(c, "input", value);
  c->has_box[value] = true;
  return (box){"input", value};
}

/* Is the stored tensor a plain number that its reader needs, such as a scale or a shape? Only a
 * drawing with details shows such constants. */
static bool is_small_constant(const canvas *c, const laci_node *node, const laci_stored *stored) {
  if (c->plot->details || !stored) return false;
  if (strstr(node->type, "QuantizeLinear")) return true;
  return laci_shape_count(&stored->shape) == 1 || laci_dtype_is_integer(stored->dtype);
}

static void draw_edges(canvas *c, int id) {
  const laci_node *node = &c->graph->nodes[id];
  for (int i = 0; i < node->n_inputs + node->n_captures; i++) {
    int value = find_read_value(node, i);
    bool captured = i >= node->n_inputs;
    const laci_stored *stored = laci_value_find_stored(c->graph, value);
    bool folded = stored && !captured && is_parameter_line(node, stored);
    bool is_line =
        folded || find_folded_producer(c, node, i) >= 0 || is_small_constant(c, node, stored);
    if (value < 0 || is_line || count_levels_of_edge(c, id, value) > c->max_span) continue;
    int producer = box_of_producer(c, value);
    bool straight = producer >= 0 && c->before[id] == producer;
    write_edge(c, find_or_draw_source_box(c, value), (box){"node", id},
               captured   ? " [style=\"dashed\"]"
               : straight ? " [weight=\"100\"]"
                          : "");
  }
}

static void draw_node(canvas *c, int id) {
  char more[64];
  const laci_plot_node *info = &c->plot->nodes[id];
  (void)snprintf(more, sizeof more, "%s%s", info->colour == LACI_PLOT_RED ? ", penwidth=\"2\"" : "",
                 c->before[id] != OFF_PATH ? ", group=\"longest\"" : "");
  write_node_label(c, id, info);
  write_box(c, (box){"node", id}, &styles[info->colour], more);
}

/* Draws block number `number`, which repeats, in a frame with the number of copies and their
 * names. */
static void draw_block(canvas *c, int number) {
  const laci_fold_block *block = &c->fold.blocks[number];
  char first[256], last[256], text[600];
  laci_fold_write_copy_name(c->graph, &c->fold, block, 0, first, sizeof first);
  laci_fold_write_copy_name(c->graph, &c->fold, block, block->copies - 1, last, sizeof last);
  bool named = *first && strcmp(first, last) != 0;
  const char *slash = strrchr(last, '/');
  const char *tail = slash && strncmp(first, last, (size_t)(slash - last)) == 0 ? slash + 1 : last;
  (void)snprintf(text, sizeof text, "\u00D7%d%s%s%s%s", block->copies, named ? "   " : "",
                 named ? first : "", named ? " \u2026 " : "", named ? tail : "");
  begin_table(c);
  begin_label_row(c);
  laci_label_add_markup(&c->label, "<B>");
  laci_label_set_font(&c->label, HEAD_SIZE, true);
  laci_label_add_text(&c->label, text, TEXT_WIDTH);
  laci_label_add_markup(&c->label, "</B>");
  end_label_row(c);
  laci_label_add_markup(
      &c->drawing,
      "  subgraph cluster_%d {\n  labelloc=\"t\"; labeljust=\"l\"; "
      "fontsize=\"%d\"; style=\"rounded,dashed\"; color=\"#616161\"; margin=\"10\";\n  ",
      number, HEAD_SIZE);
  write_label(c);
  laci_label_add_markup(&c->drawing, ";\n");
  for (int at = 0; at < block->length; at++) {
    int id = c->fold.order[block->first + at];
    if (has_own_box(c, id)) draw_node(c, id);
  }
  laci_label_add_markup(&c->drawing, "  }\n");
}

static void draw_boxes(canvas *c) {
  const laci_graph *graph = c->graph;
  for (int i = 0; i < graph->n_inputs; i++) (void)find_or_draw_source_box(c, graph->inputs[i]);
  for (int id = 0; id < graph->n_nodes; id++) {
    if (has_own_box(c, id) && !is_in_repeated_block(c, id)) draw_node(c, id);
  }
  for (int block = 0; block < c->fold.n_blocks; block++) draw_block(c, block);
  for (int id = 0; id < graph->n_nodes; id++) {
    if (has_own_box(c, id)) draw_edges(c, id);
  }
  for (int i = 0; i < graph->n_outputs; i++) {
    box from = find_or_draw_source_box(c, graph->outputs[i]);
    write_edge(c, from, draw_input_or_output_box(c, "output", graph->outputs[i]), "");
  }
}

/* ---- The heading: title, summary and the meaning of the colours ---- */

static void write_heading_line(canvas *c, const char *text, int size, bool bold) {
  laci_label *label = &c->label;
  if (!text || !*text) return;
  laci_label_begin_line(label);
  laci_label_set_font(label, size, bold);
  laci_label_add_markup(
      label, "<TR><TD COLSPAN=\"3\" ALIGN=\"LEFT\" BALIGN=\"LEFT\"><FONT POINT-SIZE=\"%d\">%s",
      size, bold ? "<B>" : "");
  laci_label_add_text(label, text, TEXT_WIDTH);
  laci_label_add_markup(label, "%s</FONT></TD></TR>", bold ? "</B>" : "");
}

static void write_heading_cell(canvas *c, const char *attributes, const char *text) {
  double width = laci_text_width(text, HEAD_SIZE, false);
  laci_label_add_markup(&c->label, "<TD %s WIDTH=\"%.0f\">", attributes, ceil(width) + 8);
  laci_label_add_text(&c->label, text, TEXT_WIDTH);
  laci_label_add_markup(&c->label, "</TD>");
}

static void write_colour_legend(canvas *c, const struct style *style, int count) {
  char text[128];
  laci_label_begin_line(&c->label);
  laci_label_set_font(&c->label, HEAD_SIZE, false);
  laci_label_add_markup(&c->label, "<TR>");
  (void)snprintf(text, sizeof text, "ALIGN=\"LEFT\" BORDER=\"1\" BGCOLOR=\"%s\" COLOR=\"%s\"",
                 style->fill, style->line);
  write_heading_cell(c, text, style->tag);
  (void)snprintf(text, sizeof text, "%d", count);
  write_heading_cell(c, "ALIGN=\"RIGHT\"", text);
  write_heading_cell(c, "ALIGN=\"LEFT\"", style->meaning);
  laci_label_add_markup(&c->label, "</TR>");
}

static void draw_heading(canvas *c) {
  int counts[N_STYLES] = {[LACI_PLOT_GREY] = c->n_small};
  for (int id = 0; id < c->graph->n_nodes; id++) {
    counts[c->folded[id] ? LACI_PLOT_GREY : c->plot->nodes[id].colour]++;
  }
  laci_label_reset(&c->label);
  write_heading_line(c, c->plot->title, 18, true);
  write_heading_line(c, c->plot->summary, 12, false);
  for (int i = 0; i < N_STYLES; i++) write_colour_legend(c, &styles[i], counts[i]);
  laci_label_add_markup(&c->drawing,
                        "  label=<<TABLE BORDER=\"0\" CELLBORDER=\"0\" CELLSPACING=\"3\" "
                        "CELLPADDING=\"3\" WIDTH=\"%.0f\">",
                        ceil(c->label.widest) + 12);
  laci_label_append_label(&c->drawing, &c->label);
  laci_label_add_markup(&c->drawing, "</TABLE>>;\n");
}

/* ---- The whole drawing ---- */

static void begin_drawing(canvas *c) {
  laci_label_add_markup(
      &c->drawing,
      "digraph network {\n"
      "  graph [rankdir=\"TB\", labelloc=\"t\", labeljust=\"l\", nodesep=\"0.25\", "
      "ranksep=\"%s\",\n"
      "    fontname=\"" LACI_FONTS
      "\", fontsize=\"%d\", splines=\"polyline\", charset=\"UTF-8\",\n"
      "    bgcolor=\"#FFFFFF\"];\n",
      c->is_folded ? "0.16" : "0.28", HEAD_SIZE);
  laci_label_add_markup(
      &c->drawing,
      "  node [shape=\"box\", style=\"rounded,filled\", fontname=\"" LACI_FONTS
      "\", fontsize=\"%d\",\n"
      "    fontcolor=\"#1A1A1A\", margin=\"0.1,0.05\", height=\"0.1\", width=\"0.1\"];\n"
      "  edge [color=\"#616161\", arrowsize=\"0.6\"];\n",
      NAME_SIZE);
}

static void canvas_clear(canvas *c) {
  laci_label_clear(&c->drawing);
  laci_label_clear(&c->label);
  laci_fold_clear(&c->fold);
  laci_free(c->folded);
  laci_free(c->before);
  laci_free(c->depth);
  laci_free(c->has_box);
}

/* Chooses which nodes have boxes of their own. */
static lac_status choose_nodes_with_boxes(canvas *c, lac_error *err) {
  int n = 0;
  lac_status st = choose_folded_nodes(c, err);
  if (st) return st;
  for (int id = 0; id < c->graph->n_nodes; id++) n += !c->folded[id];
  c->is_folded = c->plot->fold == LACI_PLOT_FOLD_ALWAYS ||
                 (c->plot->fold == LACI_PLOT_FOLD_LARGE && n > LARGE);
  return laci_fold_init(c->graph, c->plot->nodes, c->folded, c->is_folded, &c->fold, err);
}

static lac_status canvas_init(canvas *c, const laci_graph *graph, const laci_plot *plot,
                              lac_error *err) {
  *c = (canvas){.graph = graph, .plot = plot};
  c->has_box = laci_alloc((size_t)graph->n_values, sizeof *c->has_box);
  c->depth = laci_alloc((size_t)graph->n_nodes, sizeof *c->depth);
  c->before = laci_alloc((size_t)graph->n_nodes, sizeof *c->before);
  c->folded = laci_alloc((size_t)graph->n_nodes, sizeof *c->folded);
  if (!c->has_box || !c->depth || !c->before || !c->folded)
    return laci_fail_memory(err, "a drawing");
  return choose_nodes_with_boxes(c, err);
}

lac_status laci_plot_find_boxes(const laci_graph *graph, const laci_plot *plot, int *boxes,
                                bool *line, lac_error *err) {
  canvas c;
  lac_status st = canvas_init(&c, graph, plot, err);
  for (int id = 0; id < graph->n_nodes && !st; id++) {
    boxes[id] = c.fold.box[id];
    line[id] = c.fold.line[id];
  }
  canvas_clear(&c);
  return st;
}

static lac_status draw_plot_to_bytes(const laci_graph *graph, const laci_plot *plot,
                                     laci_picture picture, char **bytes, size_t *size_bytes,
                                     lac_error *err) {
  canvas c;
  lac_status st = canvas_init(&c, graph, plot, err);
  if (st) goto out;
  compute_node_depths(&c);
  choose_longest_edge(&c);
  find_longest_path(&c);
  begin_drawing(&c);
  draw_boxes(&c);
  if (!plot->for_page) draw_heading(&c);
  laci_label_add_markup(&c.drawing, "}\n");
  st = laci_render(&c.drawing, picture, bytes, size_bytes, err);
out:
  canvas_clear(&c);
  return st;
}

lac_status laci_plot_draw(const laci_graph *graph, const laci_plot *plot, const char *path,
                          char **bytes, size_t *size_bytes, lac_error *err) {
  laci_picture picture = LACI_PICTURE_SVG;
  *bytes = NULL;
  *size_bytes = 0;
  lac_status st = laci_picture_format_of_path(path, &picture, err);
  if (st) return st;
  st = draw_plot_to_bytes(graph, plot, picture, bytes, size_bytes, err);
  return st ? laci_fail_with_prefix(err, st, "%s", path) : LAC_OK;
}

lac_status laci_plot_write(const laci_graph *graph, const laci_plot *plot, const char *path,
                           bool force, lac_error *err) {
  char *bytes;
  size_t size_bytes;
  lac_status st = laci_plot_draw(graph, plot, path, &bytes, &size_bytes, err);
  if (!st) st = laci_file_write(path, bytes, size_bytes, force, err);
  laci_free(bytes);
  return st;
}
