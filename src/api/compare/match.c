/* SPDX-License-Identifier: Apache-2.0
 * Matches the nodes of two networks in their order. Nodes of the same name are a pair. The nodes
 * between two such pairs are matched by the longest common sequence of operators and shapes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/compare/compare_in.h"
#include "base/error.h"
#include "base/memory.h"
#include "graph/graph.h"

/* Maximum number of cells of a table of common sequences. A larger gap between two pairs is matched
 * node by node. */
enum { MOST_CELLS = 1 << 24 };

typedef struct named {
  const char *name;
  int node;
} named;

typedef struct matcher {
  const laci_graph *a, *b;
  laci_node_pair *pairs;
  int n;
} matcher;

static int compare_node_names(const void *x, const void *y) {
  const named *a = x, *b = y;
  int order = strcmp(a->name, b->name);
  return order ? order : (a->node > b->node) - (a->node < b->node);
}

static bool have_same_op_and_shape(const matcher *m, int a, int b) {
  const laci_node *x = &m->a->nodes[a], *y = &m->b->nodes[b];
  if (strcmp(x->type, y->type) != 0 || x->n_outputs < 1 || y->n_outputs < 1) return false;
  if (x->outputs[0] < 0 || y->outputs[0] < 0) return false;
  const laci_shape *p = &m->a->values[x->outputs[0]].type.shape,
                   *q = &m->b->values[y->outputs[0]].type.shape;
  if (p->rank < 0 || q->rank < 0) return true;
  if (p->rank != q->rank) return false;
  for (int axis = 0; axis < p->rank; axis++)
    if (p->dims[axis] >= 0 && q->dims[axis] >= 0 && p->dims[axis] != q->dims[axis]) return false;
  return true;
}

static void add_pair(matcher *m, int a, int b, bool by_name) {
  m->pairs[m->n++] = (laci_node_pair){a, b, by_name};
}

/* Matches the nodes of a gap one after the other: each with the next one of its kind. */
static void match_gap_greedily(matcher *m, int a, int a_end, int b, int b_end) {
  for (; a < a_end; a++) {
    int at = b;
    while (at < b_end && !have_same_op_and_shape(m, a, at)) at++;
    if (at == b_end) continue;
    add_pair(m, a, at, false);
    b = at + 1;
  }
}

/* Matches nodes [a, a_end) with [b, b_end) by the longest common sequence. */
static lac_status match_gap_by_sequence(matcher *m, int a, int a_end, int b, int b_end,
                                        lac_error *err) {
  const int64_t rows = a_end - a + 1, columns = b_end - b + 1;
  if (rows == 1 || columns == 1) return LAC_OK;
  if (rows * columns > MOST_CELLS) {
    match_gap_greedily(m, a, a_end, b, b_end);
    return LAC_OK;
  }
  int *longest = laci_alloc((size_t)(rows * columns), sizeof *longest);
  if (!longest) return laci_fail_memory(err, "the comparison");
  for (int64_t i = rows - 2; i >= 0; i--) {
    for (int64_t j = columns - 2; j >= 0; j--) {
      int *cell = &longest[i * columns + j], down = cell[columns], right = cell[1];
      *cell = down > right ? down : right;
      if (have_same_op_and_shape(m, a + (int)i, b + (int)j) && cell[columns + 1] + 1 > *cell)
        *cell = cell[columns + 1] + 1;
    }
  }
  for (int64_t i = 0, j = 0; i < rows - 1 && j < columns - 1;) {
    const int *cell = &longest[i * columns + j];
    if (have_same_op_and_shape(m, a + (int)i, b + (int)j) && *cell == cell[columns + 1] + 1)
      add_pair(m, a + (int)i++, b + (int)j++, false);
    else if (cell[columns] >= cell[1]) i++;
    else j++;
  }
  laci_free(longest);
  return LAC_OK;
}

/* Returns the node of the second graph with this name; -1: it has none. */
static int find_node_by_name(const named *names, size_t n, const char *name) {
  size_t low = 0, high = n;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (strcmp(names[middle].name, name) < 0) low = middle + 1;
    else high = middle;
  }
  return low < n && strcmp(names[low].name, name) == 0 ? names[low].node : -1;
}

lac_status laci_compare_pair_nodes(const laci_graph *a, const laci_graph *b, laci_node_pair **pairs,
                                   int *n_pairs, lac_error *err) {
  const size_t n = (size_t)b->n_nodes;
  matcher m = {.a = a, .b = b, .pairs = laci_alloc((size_t)a->n_nodes + 1, sizeof *m.pairs)};
  named *names = laci_alloc(n + 1, sizeof *names);
  lac_status st = m.pairs && names ? LAC_OK : laci_fail_memory(err, "the comparison");
  for (size_t k = 0; k < n && !st; k++) names[k] = (named){b->nodes[k].name, (int)k};
  if (!st && n > 1) qsort(names, n, sizeof *names, compare_node_names);
  int next_a = 0, next_b = 0;
  for (int at = 0; at < a->n_nodes && !st; at++) {
    const char *name = a->nodes[at].name;
    int found = *name ? find_node_by_name(names, n, name) : -1;
    if (found < next_b || strcmp(a->nodes[at].type, b->nodes[found].type) != 0) continue;
    st = match_gap_by_sequence(&m, next_a, at, next_b, found, err);
    add_pair(&m, at, found, true);
    next_a = at + 1;
    next_b = found + 1;
  }
  if (!st) st = match_gap_by_sequence(&m, next_a, a->n_nodes, next_b, b->n_nodes, err);
  laci_free(names);
  *pairs = m.pairs;
  *n_pairs = m.n;
  return st;
}
