/* SPDX-License-Identifier: Apache-2.0
 * Parts of graphs for ONNX Runtime's provider: over random graphs, no path between two nodes of a
 * part passes a node outside, parts and foreign nodes have an order, and no two connected parts
 * could be one. */
#include "../../plugins/ort/part.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MOST = 24, N_GRAPHS = 3000 };

typedef struct graph {
  int n, begin[MOST + 1], from[MOST * 3];
  bool may[MOST];
  int part[MOST], n_parts;
} graph;

static unsigned seed = 1;

static int draw(int n) {
  seed = seed * 1664525u + 1013904223u;
  return (int)(seed >> 8) % n;
}

static void make_graph(graph *g) {
  int n_edges = 0, foreign = draw(60);
  g->n = 2 + draw(MOST - 1);
  for (int node = 0; node < g->n; node++) {
    g->begin[node] = n_edges;
    for (int k = draw(3); node && k > 0; k--) g->from[n_edges++] = draw(node);
    g->may[node] = draw(100) >= foreign;
  }
  g->begin[g->n] = n_edges;
}

/** Group of a node: its part, or, of a foreign node, one of its own. */
static int group_of(const graph *g, int node) {
  return g->part[node] >= 0 ? g->part[node] : g->n_parts + node;
}

/** Is there a cycle of groups, if `one` and `other` are the same group? Sorted by taking groups out
 * that read of none left. */
static bool has_cycle(const graph *g, int one, int other) {
  bool gone[2 * MOST] = {false};
  int n = g->n_parts + g->n;
  for (bool again = true; again;) {
    again = false;
    for (int group = 0; group < n; group++) {
      bool reads = false, any = false;
      for (int node = 0; node < g->n; node++) {
        int own = group_of(g, node) == other ? one : group_of(g, node);
        if (own != group || gone[group]) continue;
        any = true;
        for (int k = g->begin[node]; k < g->begin[node + 1]; k++) {
          int from = group_of(g, g->from[k]) == other ? one : group_of(g, g->from[k]);
          reads = reads || (from != group && !gone[from]);
        }
      }
      if (any && !reads) gone[group] = again = true;
    }
  }
  for (int node = 0; node < g->n; node++) {
    int own = group_of(g, node) == other ? one : group_of(g, node);
    if (!gone[own]) return true;
  }
  return false;
}

static bool are_connected(const graph *g, int one, int other) {
  for (int node = 0; node < g->n; node++)
    for (int k = g->begin[node]; k < g->begin[node + 1]; k++)
      if ((g->part[node] == one && g->part[g->from[k]] == other) ||
          (g->part[node] == other && g->part[g->from[k]] == one))
        return true;
  return false;
}

static void parts_are_whole_and_as_large_as_can_be(void **state) {
  (void)state;
  for (int at = 0; at < N_GRAPHS; at++) {
    graph g;
    make_graph(&g);
    const laci_ort_edges edges = {g.n, g.begin, g.from};
    assert_true(laci_ort_cut_graph(&edges, g.may, g.part, &g.n_parts));
    for (int node = 0; node < g.n; node++) {
      assert_true((g.part[node] >= 0) == g.may[node]);
      assert_true(g.part[node] < g.n_parts);
    }
    if (has_cycle(&g, -1, -2)) fail_msg("graph %d: parts read of each other", at);
    for (int one = 0; one < g.n_parts; one++)
      for (int other = one + 1; other < g.n_parts; other++)
        if (are_connected(&g, one, other) && !has_cycle(&g, one, other))
          fail_msg("graph %d: parts %d and %d could be one", at, one, other);
  }
}

static void without_foreign_nodes_all_is_one_part(void **state) {
  (void)state;
  const int begin[] = {0, 0, 0, 1}, from[] = {1};
  const bool may[] = {true, true, true};
  const laci_ort_edges edges = {3, begin, from};
  int part[3], n_parts = 0;
  assert_true(laci_ort_cut_graph(&edges, may, part, &n_parts));
  assert_int_equal(n_parts, 1);
  for (int node = 0; node < 3; node++) assert_int_equal(part[node], 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parts_are_whole_and_as_large_as_can_be),
      cmocka_unit_test(without_foreign_nodes_all_is_one_part),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
