/* SPDX-License-Identifier: Apache-2.0
 * Inlines Ifs whose condition is known: branches.h. */
#include "graph/branches.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "tensor/buf.h"

enum { UNKNOWN, TAKEN, DEAD };

typedef struct branching {
  laci_graph *graph;
  laci_arena *arena;
  laci_node *nodes;
  uint8_t *body_is; /* [n_bodies] UNKNOWN, or whether the body is a branch that is TAKEN or DEAD */
  int *alias;       /* [n_values] for each value, the index of the one that replaces it */
} branching;

/* Returns which branch the If takes: 1 the then branch, 0 the else branch, -1 if the condition is
 * not known. */
static int find_taken_branch(const laci_graph *graph, const laci_node *node) {
  if (!laci_node_is(node, "If") || node->frames < 1 || node->n_inputs < 1 || node->inputs[0] < 0)
    return -1;
  const laci_buf *known = graph->values[node->inputs[0]].known;
  if (!known || !known->i || known->count != 1 || laci_is_symbol(known->i[0])) return -1;
  return known->i[0] != 0;
}

static bool mark_taken_branches(branching *b) {
  const laci_graph *graph = b->graph;
  bool any = false;
  for (int body = 0; body < graph->n_bodies; body++) {
    const int branch = find_taken_branch(graph, &graph->nodes[graph->bodies[body].end]);
    if (branch < 0) continue;
    any = true;
    b->body_is[body] = graph->bodies[body].branch == branch ? TAKEN : DEAD;
  }
  return any;
}

/* Returns the body that a node of `body` is in after taken branches are inlined; 0: the main graph;
 * -1: the node is in a branch that is not taken. */
static int find_body_after_inlining(const branching *b, int body) {
  int inner = 0;
  for (int at = body; at > 0; at = b->graph->bodies[at - 1].outer) {
    if (b->body_is[at - 1] == DEAD) return -1;
    if (b->body_is[at - 1] == UNKNOWN && !inner) inner = at;
  }
  return inner;
}

static int *map_values_to_aliases(const branching *b, const int *values, int n, lac_error *err) {
  int *to = laci_arena_alloc(b->arena, (size_t)n + 1, sizeof *to);
  for (int i = 0; to && i < n; i++) to[i] = values[i] < 0 ? -1 : b->alias[values[i]];
  if (!to) (void)laci_fail_memory(err, "the branches of the network");
  return to;
}

static void clear_node_ports(laci_node *node) {
  node->n_inputs = node->n_outputs = node->n_captures = node->frames = node->body = 0;
}

static lac_status inline_node(branching *b, laci_node *node, lac_error *err) {
  const int branch = find_taken_branch(b->graph, node),
            body = find_body_after_inlining(b, node->body);
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

/* Moves the bodies in taken branches to the body around the If. */
static lac_status move_bodies(branching *b, lac_error *err) {
  laci_graph *graph = b->graph;
  laci_body *bodies = laci_arena_alloc(b->arena, (size_t)graph->n_bodies, sizeof *bodies);
  if (!bodies) return laci_fail_memory(err, "the branches of the network");
  for (int body = 0; body < graph->n_bodies; body++) {
    const int outer = find_body_after_inlining(b, graph->bodies[body].outer);
    bodies[body] = graph->bodies[body];
    bodies[body].outer = outer < 0 ? 0 : outer;
  }
  graph->bodies = bodies;
  return LAC_OK;
}

/* Returns the value of read number `at` of node `id` (inputs, then captures); -1: it is absent, or
 * an earlier read of the node has the same value. last: [n_values] the last node that read it. */
static int nth_read(const laci_node *node, const int *last, int id, int at) {
  const int value = at < node->n_inputs ? node->inputs[at] : node->captures[at - node->n_inputs];
  return value < 0 || last[value] == id ? -1 : value;
}

/* Counts the readers of every value. lists: [n_values] filled with the readers; NULL: they are only
 * counted. */
static void visit_readers(laci_graph *graph, int *last, int **lists) {
  for (int v = 0; v < graph->n_values; v++) {
    graph->values[v].n_readers = 0;
    last[v] = -1;
  }
  for (int id = 0; id < graph->n_nodes; id++) {
    const laci_node *node = &graph->nodes[id];
    for (int at = 0; at < node->n_inputs + node->n_captures; at++) {
      const int value = nth_read(node, last, id, at);
      if (value < 0) continue;
      last[value] = id;
      const int reader = graph->values[value].n_readers++;
      if (lists) lists[value][reader] = id;
    }
  }
}

/* Lists the readers of every value again, after nodes were moved out of branches. */
static lac_status list_value_readers(branching *b, lac_error *err) {
  laci_graph *graph = b->graph;
  const size_t n_values = (size_t)graph->n_values;
  int *last = laci_alloc(n_values + 1, sizeof *last);
  int **lists = laci_alloc(n_values + 1, sizeof *lists);
  bool whole = last && lists;
  if (whole) visit_readers(graph, last, NULL);
  for (size_t v = 0; v < n_values && whole; v++) {
    const size_t n = (size_t)graph->values[v].n_readers;
    lists[v] = laci_arena_alloc(b->arena, n + 1, sizeof *lists[v]);
    whole = lists[v] != NULL;
    graph->values[v].readers = lists[v];
  }
  if (whole) visit_readers(graph, last, lists);
  laci_free(last);
  laci_free((void *)lists);
  return whole ? LAC_OK : laci_fail_memory(err, "the branches of the network");
}

static lac_status inline_taken_branches(branching *b, lac_error *err) {
  laci_graph *graph = b->graph;
  const size_t n_nodes = (size_t)graph->n_nodes;
  b->nodes = laci_arena_alloc(b->arena, n_nodes + 1, sizeof *b->nodes);
  if (!b->nodes) return laci_fail_memory(err, "the branches of the network");
  memcpy(b->nodes, graph->nodes, n_nodes * sizeof *b->nodes);
  for (int v = 0; v < graph->n_values; v++) b->alias[v] = v;
  lac_status st = LAC_OK;
  for (size_t at = 0; at < n_nodes && !st; at++) st = inline_node(b, &b->nodes[at], err);
  int *outputs = st ? NULL : map_values_to_aliases(b, graph->outputs, graph->n_outputs, err);
  if (!st && !outputs) st = LAC_NO_MEMORY;
  if (!st) st = move_bodies(b, err);
  if (st) return st;
  graph->nodes = b->nodes;
  graph->outputs = outputs;
  return list_value_readers(b, err);
}

lac_status laci_graph_inline_branches(laci_graph *graph, laci_arena *arena, const int **alias,
                                      lac_error *err) {
  *alias = NULL;
  if (graph->n_bodies == 0) return LAC_OK;
  branching b = {.graph = graph, .arena = arena};
  b.body_is = laci_alloc((size_t)graph->n_bodies + 1, sizeof *b.body_is);
  b.alias = laci_arena_alloc(arena, (size_t)graph->n_values + 1, sizeof *b.alias);
  lac_status st =
      b.body_is && b.alias ? LAC_OK : laci_fail_memory(err, "the branches of the network");
  const bool any = !st && mark_taken_branches(&b);
  if (any) st = inline_taken_branches(&b, err);
  if (any && !st) *alias = b.alias;
  laci_free(b.body_is);
  return st;
}
