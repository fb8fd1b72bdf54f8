/* SPDX-License-Identifier: Apache-2.0
 * Inlines Ifs whose condition is known. The nodes of the taken branch become nodes of the graph
 * around the If. The nodes of the other branch lose their results. Indices of nodes and values do
 * not change. */
#include <string.h>

#include "base/error.h"
#include "calibrate/network_in.h"
#include "graph/op.h"
#include "tensor/buf.h"

enum { UNKNOWN, TAKEN, DEAD };

typedef struct branching {
  laci_network *n;
  laci_node *nodes;
  uint8_t *body_is; /* [n_bodies] UNKNOWN, or whether the body is a branch that is TAKEN or DEAD */
  int *alias;       /* [n_values] for each value, the index of the one that replaces it */
} branching;

/* Returns which branch the If takes: 1 the then branch, 0 the else branch, -1 if the condition is
 * not known. */
static int find_taken_branch(const laci_network *n, const laci_node *node) {
  if (!laci_node_is(node, "If") || node->frames < 1 || node->n_inputs < 1 || node->inputs[0] < 0)
    return -1;
  const laci_buf *known = n->graph.values[node->inputs[0]].known;
  if (!known || !known->i || known->count != 1 || laci_is_symbol(known->i[0])) return -1;
  return known->i[0] != 0;
}

static bool mark_taken_branches(branching *b) {
  const laci_graph *graph = &b->n->graph;
  bool any = false;
  for (int at = 0; at < graph->n_nodes; at++) {
    const laci_node *node = &graph->nodes[at];
    const int branch = find_taken_branch(b->n, node);
    if (branch < 0) continue;
    any = true;
    for (int body = 0; body < graph->n_bodies; body++)
      if (graph->bodies[body].end == at)
        b->body_is[body] = graph->bodies[body].branch == branch ? TAKEN : DEAD;
  }
  return any;
}

/* Returns the body that a node of `body` is in after taken branches are inlined; 0: the main graph;
 * -1: the node is in a branch that is not taken. */
static int find_body_after_inlining(const branching *b, int body) {
  int outer = body;
  while (outer > 0) {
    if (b->body_is[outer - 1] == DEAD) return -1;
    if (b->body_is[outer - 1] == UNKNOWN) {
      if (outer != body) return outer;
      /* a body inside a branch that is not taken never runs */
      for (int at = b->n->graph.bodies[outer - 1].outer; at > 0;
           at = b->n->graph.bodies[at - 1].outer)
        if (b->body_is[at - 1] == DEAD) return -1;
      return outer;
    }
    outer = b->n->graph.bodies[outer - 1].outer;
  }
  return 0;
}

static int *map_values_to_aliases(const branching *b, const int *values, int n, lac_error *err) {
  int *to = laci_arena_alloc(&b->n->arena, (size_t)n + 1, sizeof *to);
  for (int i = 0; to && i < n; i++) to[i] = values[i] < 0 ? -1 : b->alias[values[i]];
  if (!to) (void)laci_fail_memory(err, "the branches of the network");
  return to;
}

static void clear_node_ports(laci_node *node) {
  node->n_inputs = node->n_outputs = node->n_captures = node->frames = node->body = 0;
}

static lac_status inline_node(branching *b, laci_node *node, lac_error *err) {
  const int branch = find_taken_branch(b->n, node), body = find_body_after_inlining(b, node->body);
  node->inputs = map_values_to_aliases(b, node->inputs, node->n_inputs, err);
  node->captures = map_values_to_aliases(b, node->captures, node->n_captures, err);
  if (!node->inputs || !node->captures) return LAC_NO_MEMORY;
  node->body = body < 0 ? 0 : body;
  const int n = node->n_outputs;
  if (branch >= 0 && node->n_inputs == 1 + 2 * n) {
    for (int i = 0; i < n; i++) {
      const int result = node->inputs[1 + (branch ? 0 : n) + i];
      if (node->outputs[i] >= 0 && result >= 0) b->alias[node->outputs[i]] = result;
    }
    clear_node_ports(node);
  } else if (body < 0) {
    clear_node_ports(node);
  }
  return LAC_OK;
}

static bool reads_value(const laci_node *node, int value) {
  for (int i = 0; i < node->n_inputs; i++)
    if (node->inputs[i] == value) return true;
  for (int i = 0; i < node->n_captures; i++)
    if (node->captures[i] == value) return true;
  return false;
}

/* Lists the readers of every value again, after nodes were moved out of branches. */
static lac_status list_value_readers(branching *b, lac_error *err) {
  laci_graph *graph = &b->n->graph;
  int *at_once = laci_alloc((size_t)graph->n_nodes + 1, sizeof *at_once);
  lac_status st = at_once ? LAC_OK : laci_fail_memory(err, "the branches of the network");
  for (int v = 0; v < graph->n_values && !st; v++) {
    int n = 0;
    for (int at = 0; at < graph->n_nodes; at++)
      if (reads_value(&graph->nodes[at], v)) at_once[n++] = at;
    int *readers = laci_arena_alloc(&b->n->arena, (size_t)n + 1, sizeof *readers);
    if (!readers) st = laci_fail_memory(err, "the branches of the network");
    if (readers && n > 0) memcpy(readers, at_once, (size_t)n * sizeof *readers);
    graph->values[v].readers = readers;
    graph->values[v].n_readers = readers ? n : 0;
  }
  laci_free(at_once);
  return st;
}

static lac_status inline_taken_branches(branching *b, lac_error *err) {
  laci_graph *graph = &b->n->graph;
  const size_t n_nodes = (size_t)graph->n_nodes;
  b->nodes = laci_arena_alloc(&b->n->arena, n_nodes + 1, sizeof *b->nodes);
  if (!b->nodes) return laci_fail_memory(err, "the branches of the network");
  memcpy(b->nodes, graph->nodes, n_nodes * sizeof *b->nodes);
  for (int v = 0; v < graph->n_values; v++) b->alias[v] = v;
  lac_status st = LAC_OK;
  for (size_t at = 0; at < n_nodes && !st; at++) st = inline_node(b, &b->nodes[at], err);
  int *outputs = st ? NULL : map_values_to_aliases(b, graph->outputs, graph->n_outputs, err);
  if (!st && !outputs) st = LAC_NO_MEMORY;
  if (st) return st;
  graph->nodes = b->nodes;
  graph->outputs = outputs;
  b->n->alias = b->alias;
  b->n->is_reduced = true;
  return list_value_readers(b, err);
}

lac_status laci_network_inline_branches(laci_network *n, lac_error *err) {
  if (n->graph.n_bodies == 0) return LAC_OK;
  branching b = {.n = n};
  b.body_is = laci_alloc((size_t)n->graph.n_bodies + 1, sizeof *b.body_is);
  b.alias = laci_arena_alloc(&n->arena, (size_t)n->graph.n_values + 1, sizeof *b.alias);
  lac_status st =
      b.body_is && b.alias ? LAC_OK : laci_fail_memory(err, "the branches of the network");
  if (!st && mark_taken_branches(&b)) st = inline_taken_branches(&b, err);
  laci_free(b.body_is);
  return st;
}
