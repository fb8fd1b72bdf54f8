/* SPDX-License-Identifier: Apache-2.0
 * The last step of building a graph: every value read is defined, nodes stand in execution order,
 * readers are listed.
 *
 * Order is that of the file wherever the file is sorted: a walk through the nodes as they come
 * emits each one after the producers of what it reads. The walk keeps its own stack, so that a long
 * chain cannot overflow ours. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/graph.h"

enum { UNSEEN, OPEN, DONE };

/** The at-th value that a node reads (inputs, then captures); -1: an absent input. */
static int read_of(const laci_node *node, int at) {
  return at < node->n_inputs ? node->inputs[at] : node->captures[at - node->n_inputs];
}

static int n_reads(const laci_node *node) { return node->n_inputs + node->n_captures; }

static bool is_defined(const laci_value *value) {
  return value->is_input || value->stored >= 0 || value->producer >= 0;
}

static lac_status check_defined(const laci_graph *graph, lac_error *err) {
  for (int n = 0; n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    for (int at = 0; at < n_reads(node); at++) {
      int value = read_of(node, at);
      if (value < 0 || is_defined(&graph->values[value])) continue;
      return laci_fail(err, LAC_BAD_FILE, "%s (%s): reads '%s', which nothing defines", node->name,
                       node->type, graph->values[value].name);
    }
  }
  for (int at = 0; at < graph->n_outputs; at++) {
    const laci_value *value = &graph->values[graph->outputs[at]];
    if (!is_defined(value)) {
      return laci_fail(err, LAC_BAD_FILE, "graph output '%s' is defined by nothing", value->name);
    }
  }
  return LAC_OK;
}

typedef struct sorter {
  const laci_graph *graph;
  uint8_t *state; /* [n_nodes] */
  int *next;      /* [n_nodes] next read to look at of an open node */
  int *stack;     /* [n_nodes] */
  int *order;     /* [n_nodes] old ids in new order */
  int n_order;
} sorter;

static lac_status visit(sorter *s, int root, lac_error *err) {
  int depth = 0;
  s->stack[depth++] = root;
  s->state[root] = OPEN;
  while (depth > 0) {
    int n = s->stack[depth - 1];
    const laci_node *node = &s->graph->nodes[n];
    if (s->next[n] == n_reads(node)) {
      s->state[n] = DONE;
      s->order[s->n_order++] = n;
      depth--;
      continue;
    }
    int value = read_of(node, s->next[n]++);
    int producer = value >= 0 ? s->graph->values[value].producer : -1;
    if (producer < 0 || s->state[producer] == DONE) continue;
    if (s->state[producer] == OPEN) {
      return laci_fail(err, LAC_BAD_FILE, "a cycle: %s (%s) needs '%s', which needs that node",
                       node->name, node->type, s->graph->values[value].name);
    }
    s->state[producer] = OPEN;
    s->stack[depth++] = producer;
  }
  return LAC_OK;
}

static void renumber(laci_graph *graph, const int *order, laci_node *scratch) {
  if (graph->n_nodes == 0) return; /* there is no array of them */
  for (int n = 0; n < graph->n_nodes; n++) scratch[n] = graph->nodes[order[n]];
  memcpy(graph->nodes, scratch, (size_t)graph->n_nodes * sizeof *scratch);
  for (int n = 0; n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    for (int at = 0; at < node->n_outputs; at++) {
      if (node->outputs[at] >= 0) graph->values[node->outputs[at]].producer = n;
    }
  }
}

static lac_status sort_nodes(laci_graph *graph, lac_error *err) {
  size_t n = (size_t)graph->n_nodes;
  sorter s = {.graph = graph};
  laci_node *scratch = laci_alloc(n, sizeof *scratch);
  s.state = laci_alloc(n, sizeof *s.state);
  s.next = laci_alloc(n, sizeof *s.next);
  s.stack = laci_alloc(n, sizeof *s.stack);
  s.order = laci_alloc(n, sizeof *s.order);
  lac_status st = LAC_OK;
  if (!scratch || !s.state || !s.next || !s.stack || !s.order) {
    st = laci_fail_memory(err, "sorting the nodes");
    goto out;
  }
  for (int root = 0; root < graph->n_nodes && !st; root++) {
    if (s.state[root] == UNSEEN) st = visit(&s, root, err);
  }
  if (!st) renumber(graph, s.order, scratch);
out:
  laci_free(scratch);
  laci_free(s.state);
  laci_free(s.next);
  laci_free(s.stack);
  laci_free(s.order);
  return st;
}

/** Calls the value's reader once for each node: a node that reads it twice is its last reader
 * already. */
static void add_reader(laci_value *value, int *list, int node) {
  if (value->n_readers && list[value->n_readers - 1] == node) return;
  list[value->n_readers++] = node;
}

static lac_status list_readers(laci_graph *graph, lac_error *err) {
  size_t n_values = (size_t)graph->n_values, total = 0;
  size_t *first = laci_alloc(n_values + 1, sizeof *first);
  if (!first) return laci_fail_memory(err, "the readers of values");
  for (int n = 0; n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    for (int at = 0; at < n_reads(node); at++) {
      int value = read_of(node, at);
      if (value >= 0) first[value + 1]++;
    }
  }
  for (size_t v = 0; v < n_values; v++) first[v + 1] += first[v];
  total = first[n_values];
  int *readers = laci_arena_alloc(graph->arena, total, sizeof *readers);
  if (!readers) {
    laci_free(first);
    return laci_fail_memory(err, "the readers of values");
  }
  for (size_t v = 0; v < n_values; v++) {
    graph->values[v].n_readers = 0;
    graph->values[v].readers = readers + first[v];
  }
  for (int n = 0; n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    for (int at = 0; at < n_reads(node); at++) {
      int value = read_of(node, at);
      if (value >= 0) add_reader(&graph->values[value], readers + first[value], n);
    }
  }
  laci_free(first);
  return LAC_OK;
}

lac_status laci_graph_finish(laci_graph *graph, lac_error *err) {
  lac_status st = check_defined(graph, err);
  if (!st) st = sort_nodes(graph, err);
  if (!st) st = list_readers(graph, err);
  return st;
}
