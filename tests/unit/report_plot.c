/* SPDX-License-Identifier: Apache-2.0
 * The drawing: what it shows, any names, all formats and their limits, files. How it looks is
 * for eyes to judge. Networks are in graph_build.h's notation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <unistd.h>

#include "base/memory.h"
#include "report/plot.h"
#include "support/graph_build.h"
#include "tensor/buf.h"

static laci_graph *read_net(const char *net) {
  laci_graph *graph = NULL;
  lac_error err = {0};
  if (net_read(net, &graph, &err)) fail_msg("%s", err.text);
  return graph;
}

/* The drawing as zero-terminated text (PDF and PNG: bytes); freed with laci_free. */
static char *draw(const laci_graph *graph, const laci_plot_node *nodes, const char *path,
                  size_t *size) {
  laci_plot plot = {.title = "net.onnx, 2:4",
                    .summary = "1/2 layers pruned",
                    .nodes = nodes,
                    .details = true,
                    .fold = LACI_PLOT_FOLD_NEVER};
  char *bytes = NULL;
  size_t n = 0;
  lac_error err = {0};
  if (laci_plot_draw(graph, &plot, path, &bytes, &n, &err)) fail_msg("%s", err.text);
  char *text = laci_resize(bytes, n, n + 1, 1);
  assert_non_null(text);
  if (size) *size = n;
  return text;
}

static void expect_text(const char *text, const char *wanted) {
  if (!strstr(text, wanted)) fail_msg("'%s' is not in the drawing", wanted);
}

static int count_text(const char *text, const char *wanted) {
  int n = 0;
  for (const char *at = strstr(text, wanted); at; at = strstr(at + 1, wanted)) n++;
  return n;
}

static const char net[] =
    "input x 1x3x8x8\nstored features.0.weight 8x3x3x3\nstored features.0.bias 8\nstored scale "
    "\"\" = 0.5\n"
    "stored add 8x1x1\nstored to 2 i64 = 1 288\nc = Conv(x, features.0.weight, features.0.bias) "
    "name=\"first\"\n"
    "r = Relu(c)\nm = Mul(r, scale)\na = Add(m, add)\nu = Odd(a) domain=\"my\" "
    "name=\"odd\"\noutput u\n";

static const laci_plot_node looks[] = {
    {.colour = LACI_PLOT_GREEN, .detail = "group 1 -> 2   [K,C]  S\nhalf is kept"},
    {.colour = LACI_PLOT_YELLOW},
    {.colour = LACI_PLOT_ORANGE},
    {.colour = LACI_PLOT_YELLOW},
    {.colour = LACI_PLOT_RED,
     .reason = "nobody declared this operator, so that nothing which reaches it may move at all"},
};

static void says_what_each_node_is(void **state) {
  (void)state;
  laci_graph *graph = read_net(net);
  char *dot = draw(graph, looks, "a.dot", NULL);
  static const char *const wanted[] = {"digraph",
                                       "net.onnx, 2:4",
                                       "1/2 layers pruned",
                                       "first",
                                       "[1, 8, 6, 6]",
                                       "weight  [8, 3, 3, 3]",
                                       "bias  [8]",
                                       "group 1 -&gt; 2",
                                       "half is kept",
                                       "blocks",
                                       "follows",
                                       "passes",
                                       "<BR/>",
                                       "0.5",
                                       "[8, 1, 1]"};
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) expect_text(dot, wanted[i]);
  assert_int_equal(count_text(dot, " -> "), 8); /* two of them from constants */
  laci_free(dot);
  laci_graph_destroy(graph);
}

static void every_format_is_drawn(void **state) {
  (void)state;
  static const char *const starts[][2] = {
      {"a.svg", "<?xml"}, {"b.PDF", "%PDF-"}, {"c.png", "\x89PNG"}, {"d.e.dot", "digraph"}};
  laci_graph *graph = read_net(net);
  for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
    char *bytes = draw(graph, looks, starts[i][0], NULL);
    if (strncmp(bytes, starts[i][1], strlen(starts[i][1])) != 0) fail_msg("%s", starts[i][0]);
    laci_free(bytes);
  }
  laci_graph_destroy(graph);
}

static void the_same_network_gives_the_same_picture(void **state) {
  (void)state;
  static const char *const paths[] = {"a.svg", "a.png", "a.dot"};
  laci_graph *graph = read_net(net);
  for (int i = 0; i < 3; i++) {
    size_t n, m;
    char *one = draw(graph, looks, paths[i], &n), *two = draw(graph, looks, paths[i], &m);
    assert_int_equal(n, m);
    assert_memory_equal(one, two, n);
    laci_free(one);
    laci_free(two);
  }
  laci_graph_destroy(graph);
}

static void names_may_hold_any_bytes(void **state) {
  (void)state;
  laci_graph *graph = read_net("input x 3\ny = Relu(x)\noutput y\n");
  laci_plot_node look = {.colour = LACI_PLOT_YELLOW, .detail = "tab\tand \x01 \x7f"};
  graph->nodes[0].name = "a<b>&\"c\" \\N \\G \xff\xc3\xa9 ]]> <TABLE>";
  char *svg = draw(graph, &look, "a.svg", NULL);
  expect_text(svg, "a&lt;b&gt;&amp;&quot;c&quot; \\N \\G \xEF\xBF\xBD\xc3\xa9");
  expect_text(svg, "tab and");
  for (const char *at = svg; *at; at++) assert_true((uint8_t)*at >= 0x20 || *at == '\n');
  laci_free(svg);
  laci_graph_destroy(graph);
}

/* A chain of n nodes. */
static laci_graph *read_chain(int n) {
  size_t capacity = (size_t)n * 80 + 200, used = 0;
  char *text = laci_alloc(capacity, 1);
  assert_non_null(text);
  used += (size_t)snprintf(text, capacity, "input v0 1x3\n");
  for (int i = 1; i <= n; i++) {
    used += (size_t)snprintf(text + used, capacity - used,
                             "v%d = Relu(v%d) name=\"node %d of the chain\"\n", i, i - 1, i);
  }
  (void)snprintf(text + used, capacity - used, "output v%d\n", n);
  laci_graph *graph = read_net(text);
  laci_free(text);
  return graph;
}

static uint32_t png_number(const char *at) {
  const uint8_t *b = (const uint8_t *)at;
  return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static void tall_drawings_are_whole_in_every_format(void **state) {
  (void)state;
  enum { N = 900 };
  laci_graph *graph = read_chain(N);
  laci_plot_node *all = laci_alloc(N, sizeof *all);
  assert_non_null(all);
  char *svg = draw(graph, all, "a.svg", NULL);
  assert_int_equal(count_text(svg, " of the chain<"), N);
  laci_free(svg);
  size_t size;
  char *png = draw(graph, all, "a.png", &size);
  const uint32_t png_width = png_number(png + 16), png_height = png_number(png + 20);
  /* columns, of which a page of A4 shows more than of a strip 100 times as high as wide */
  assert_true(size > 24 && png_width > 1000 && png_height > 1000 && png_height < 4 * png_width &&
              png_width < 4 * png_height);
  laci_free(png);
  char *pdf = draw(graph, all, "a.pdf", &size);
  const char *page = pdf;
  while (page < pdf + size && memcmp(page, "/MediaBox", 9) != 0) page++;
  double width = 0, height = 0;
  if (page < pdf + size) { /* not compressed, then */
    assert_int_equal(sscanf(page, "/MediaBox [ %*f %*f %lf %lf", &width, &height), 2);
    if (!(width > 300 && width <= 14400 && height > 300 && height <= 14400))
      fail_msg("the page is %g x %g points", width, height);
  }
  laci_free(pdf);
  laci_free(all);
  laci_graph_destroy(graph);
}

/* ---- Large networks ---- */

/* n blocks of a product, a Relu and a sum with what the block reads. outside: the block that the
 * network's second output reads; -1: there is none. */
static laci_graph *read_blocks(int n, int outside) {
  char text[8192] = "input x 4x8\nv0 = Abs(x)\n";
  for (int i = 0; i < n; i++) {
    size_t used = strlen(text);
    (void)snprintf(text + used, sizeof text - used,
                   "stored w%d 8x8\np%d = MatMul(v%d, w%d) name=\"net.%d.product\"\n"
                   "r%d = Relu(p%d) name=\"net.%d.relu\"\n"
                   "v%d = Add(r%d, v%d) name=\"net.%d.sum\"\n",
                   i, i, i, i, i, i, i, i, i + 1, i, i, i);
  }
  size_t used = strlen(text);
  (void)snprintf(text + used, sizeof text - used, "e = Neg(v%d)\noutput e\n", n);
  if (outside >= 0) {
    used = strlen(text);
    (void)snprintf(text + used, sizeof text - used, "output v%d\n", outside + 1);
  }
  return read_net(text);
}

static char *draw_folded(const laci_graph *graph, laci_plot_node *nodes, int *boxes, bool *lines) {
  laci_plot plot = {.title = "t", .nodes = nodes, .fold = LACI_PLOT_FOLD_ALWAYS};
  char *bytes = NULL;
  size_t n = 0;
  lac_error err = {0};
  for (int id = 0; id < graph->n_nodes; id++)
    nodes[id].colour =
        strcmp(graph->nodes[id].type, "MatMul") == 0 ? LACI_PLOT_GREEN : LACI_PLOT_YELLOW;
  if (laci_plot_find_boxes(graph, &plot, boxes, lines, &err)) fail_msg("%s", err.text);
  if (laci_plot_draw(graph, &plot, "a.dot", &bytes, &n, &err)) fail_msg("%s", err.text);
  char *text = laci_resize(bytes, n, n + 1, 1);
  assert_non_null(text);
  return text;
}

static void a_block_that_repeats_is_drawn_once(void **state) {
  (void)state;
  enum { N = 20, NODES = 3 * N + 2 };
  laci_plot_node nodes[NODES] = {0};
  int boxes[NODES];
  bool lines[NODES];
  laci_graph *graph = read_blocks(N, -1);
  assert_int_equal(graph->n_nodes, NODES);
  char *dot = draw_folded(graph, nodes, boxes, lines);
  expect_text(dot, "\u00D720   net.0 \u2026 net.19");
  expect_text(dot, "+ Relu");
  /* Abs, a product, a sum, Neg: four boxes, and what is drawn between them */
  assert_int_equal(
      count_text(dot, "fillcolor=\"#FFF7C2\"") + count_text(dot, "fillcolor=\"#C9E8CB\""), 4);
  expect_text(dot, "node0 -> node1");
  expect_text(dot, "node1 -> node3");
  expect_text(dot, "node0 -> node3");
  expect_text(dot, "node3 -> node61");
  for (int id = 1; id < NODES - 1; id++) {
    int within = (id - 1) % 3;
    assert_int_equal(boxes[id], within == 2 ? 3 : 1);
    assert_int_equal(lines[id], within == 1);
  }
  laci_free(dot);
  laci_graph_destroy(graph);
}

static void what_is_read_outside_is_not_folded_away(void **state) {
  (void)state;
  enum { N = 20, NODES = 3 * N + 2, READ = 7 };
  laci_plot_node nodes[NODES] = {0};
  int boxes[NODES];
  bool lines[NODES];
  laci_graph *graph = read_blocks(N, READ);
  char *dot = draw_folded(graph, nodes, boxes, lines);
  /* the blocks up to the one that is read, and those after it */
  expect_text(dot, "\u00D78   net.0 \u2026 net.7");
  expect_text(dot, "\u00D712   net.8 \u2026 net.19");
  expect_text(dot, "node3 -> node25");
  laci_free(dot);
  laci_graph_destroy(graph);
}

static void nodes_that_differ_are_not_folded(void **state) {
  (void)state;
  enum { N = 20, NODES = 3 * N + 2 };
  laci_plot_node nodes[NODES] = {0};
  int boxes[NODES];
  bool lines[NODES];
  laci_graph *graph = read_blocks(N, -1);
  nodes[1 + 3 * 4].kind = "S"; /* the product of the fifth block alone is pruned */
  char *dot = draw_folded(graph, nodes, boxes, lines);
  expect_text(dot, "\u00D74   net.0 \u2026 net.3");
  expect_text(dot, "\u00D715   net.5 \u2026 net.19");
  assert_int_equal(boxes[13], 13);
  laci_free(dot);
  laci_graph_destroy(graph);
}

static void edges_that_nobody_could_follow_become_words(void **state) {
  (void)state;
  enum { N = 120 };
  char text[N * 64 + 200];
  size_t used = (size_t)snprintf(text, sizeof text, "input x 1x3\nv0 = Relu(x) name=\"source\"\n");
  for (int i = 1; i < N; i++) {
    used += (size_t)snprintf(text + used, sizeof text - used, "v%d = Add(v%d, v0) name=\"n%d\"\n",
                             i, i - 1, i);
  }
  (void)snprintf(text + used, sizeof text - used, "output v%d\n", N - 1);
  laci_graph *graph = read_net(text);
  laci_plot_node looks_alike[N] = {0};
  char *dot = draw(graph, looks_alike, "a.dot", NULL);
  int words = count_text(dot, "\u2190 source"), edges = count_text(dot, " -> ");
  assert_true(words > N / 2);
  assert_int_equal(words + edges, 2 * (N - 1) + 2); /* each input is an edge or a line */
  laci_free(dot);
  laci_graph_destroy(graph);
}

static void long_reasons_are_wrapped(void **state) {
  (void)state;
  laci_graph *graph = read_net("input x 3\ny = Relu(x)\noutput y\n");
  char reason[2001];
  for (size_t i = 0; i < sizeof reason - 1; i++) reason[i] = i % 9 == 8 ? ' ' : 'a';
  reason[sizeof reason - 1] = 0;
  laci_plot_node look = {.colour = LACI_PLOT_RED, .reason = reason};
  char *dot = draw(graph, &look, "a.dot", NULL);
  assert_true(count_text(dot, "<BR/>") > 30);
  laci_free(dot);
  memset(reason, 'x', sizeof reason - 1); /* no place to break it */
  dot = draw(graph, &look, "a.dot", NULL);
  assert_true(count_text(dot, "<BR/>") > 30);
  laci_free(dot);
  laci_graph_destroy(graph);
}

static void files_are_written_with_care(void **state) {
  (void)state;
  char folder[] = "/tmp/lacuna_plot_XXXXXX", path[64];
  assert_non_null(mkdtemp(folder));
  laci_graph *graph = read_net(net);
  laci_plot plot = {.title = "t", .nodes = looks};
  lac_error err = {0};
  (void)snprintf(path, sizeof path, "%s/a.jpeg", folder);
  assert_int_equal(laci_plot_write(graph, &plot, path, true, &err), LAC_BAD_ARGUMENT);
  assert_non_null(strstr(err.text, ".svg"));
  assert_int_equal(access(path, F_OK), -1);
  (void)snprintf(path, sizeof path, "%s/a.svg", folder);
  assert_int_equal(laci_plot_write(graph, &plot, path, false, NULL), LAC_OK);
  assert_int_equal(laci_plot_write(graph, &plot, path, false, NULL), LAC_EXISTS);
  assert_int_equal(laci_plot_write(graph, &plot, path, true, NULL), LAC_OK);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(rmdir(folder), 0);
  laci_graph_destroy(graph);
}

static void fails_cleanly_without_memory(void **state) {
  (void)state;
  laci_graph *graph = read_net(net);
  laci_plot plot = {.title = "t", .nodes = looks};
  for (long n = 1; n < 1000; n++) {
    char *bytes;
    size_t size;
    laci_memory_fail_from(n);
    lac_status st = laci_plot_draw(graph, &plot, "a.dot", &bytes, &size, NULL);
    laci_memory_fail_from(0);
    laci_free(bytes);
    if (!st) {
      laci_graph_destroy(graph);
      return;
    }
    assert_int_equal(st, LAC_NO_MEMORY);
    assert_null(bytes);
  }
  fail_msg("never succeeded");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(says_what_each_node_is),
      cmocka_unit_test(every_format_is_drawn),
      cmocka_unit_test(the_same_network_gives_the_same_picture),
      cmocka_unit_test(names_may_hold_any_bytes),
      cmocka_unit_test(tall_drawings_are_whole_in_every_format),
      cmocka_unit_test(a_block_that_repeats_is_drawn_once),
      cmocka_unit_test(what_is_read_outside_is_not_folded_away),
      cmocka_unit_test(nodes_that_differ_are_not_folded),
      cmocka_unit_test(edges_that_nobody_could_follow_become_words),
      cmocka_unit_test(long_reasons_are_wrapped),
      cmocka_unit_test(files_are_written_with_care),
      cmocka_unit_test(fails_cleanly_without_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
