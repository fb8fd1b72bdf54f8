/* SPDX-License-Identifier: Apache-2.0
 * The last step of building a graph: checks that every value read is defined, puts nodes in
 * execution order, lists readers.
 *
 * A sorted file keeps its order: a depth-first walk over the nodes in file order emits each one
 * after the producers of the values that it reads. The walk has an explicit stack, so a long chain
 * cannot overflow the call stack.
 *
 * A loop is run by going back from its end to its beginning, so the nodes in between must be its
 * body and nothing else. Therefore the node that begins the loop depends on all that the body reads
 * from outside, every node of the body depends on that node, and the end depends on all of them.
 * Nodes in the bodies of an If depend on its condition. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/graph.h"

enum { UNSEEN, OPEN, DONE };

/** Returns value number `at` of those that a node reads (inputs, then captures); -1: an absent
 * input. */
static int value_read_at(const laci_node *node, int at) {
  return at < node->n_inputs ? node->inputs[at] : node->captures[at - node->n_inputs];
}

static int count_values_read(const laci_node *node) { return node->n_inputs + node->n_captures; }

static bool is_defined(const laci_value *value) {
  return value->is_input || value->stored >= 0 || value->producer >= 0;
}

static lac_status check_values_are_defined(const laci_graph *graph, lac_error *err) {
  for (int n = 0; n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    for (int at = 0; at < count_values_read(node); at++) {
      int value = value_read_at(node, at);
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

/* ---- Dependencies: the nodes that must come before a node ---- */

/** For each node, the nodes that must come before it: those of n are list[first[n]] .. list[first[n
 * + 1] - 1]. While list is NULL, they are only counted. */
typedef struct dependencies {
  const laci_graph *graph;
  size_t *first; /* [n_nodes + 1] where the part of each node begins in `list` */
  size_t *at;    /* [n_nodes] while the list is filled: the next free index */
  int *list;
} dependencies;

static void add_dependency(dependencies *all, int node, int needed) {
  if (needed < 0) return;
  if (all->list) all->list[all->at[node]++] = needed;
  else all->first[node + 1]++;
}

/** Is the body `inner` equal to `outer`, or nested inside of it? */
static bool is_body_within(const laci_graph *graph, int inner, int outer) {
  while (inner > outer) inner = graph->bodies[inner - 1].outer;
  return inner == outer;
}

/** Makes node n depend on the producer of `value`. If n is in loops that the producer is not in,
 * the node that begins each of these loops depends on the producer, too. */
static void add_read_dependency(dependencies *all, int n, int value) {
  const laci_graph *graph = all->graph;
  int producer = value >= 0 ? graph->values[value].producer : -1;
  add_dependency(all, n, producer);
  int from = producer >= 0 ? graph->nodes[producer].body : 0;
  for (int b = graph->nodes[n].body; producer >= 0 && b && !is_body_within(graph, from, b);
       b = graph->bodies[b - 1].outer) {
    const laci_body *body = &graph->bodies[b - 1];
    if (body->begin >= 0 && body->begin != producer) add_dependency(all, body->begin, producer);
  }
}

static void add_body_dependencies(dependencies *all, int n) {
  const laci_graph *graph = all->graph;
  int b = graph->nodes[n].body;
  if (!b) return;
  const laci_body *body = &graph->bodies[b - 1];
  const laci_node *end = &graph->nodes[body->end];
  if (body->begin >= 0) add_dependency(all, n, body->begin);
  else if (end->n_inputs > 0) add_read_dependency(all, n, end->inputs[0]);
  add_dependency(all, body->end, n);
}

static void list_dependencies(dependencies *all) {
  for (int b = 0; b < all->graph->n_bodies; b++) {
    const laci_body *body = &all->graph->bodies[b];
    /* the node that ends a body depends on the node that begins it */
    if (body->begin >= 0) add_dependency(all, body->end, body->begin);
  }
  for (int n = 0; n < all->graph->n_nodes; n++) {
    const laci_node *node = &all->graph->nodes[n];
    add_body_dependencies(all, n);
    for (int at = 0; at < count_values_read(node); at++)
      add_read_dependency(all, n, value_read_at(node, at));
  }
}

static void dependencies_clear(dependencies *all) {
  laci_free(all->first);
  laci_free(all->at);
  laci_free(all->list);
}

static lac_status dependencies_init(dependencies *all, const laci_graph *graph, lac_error *err) {
  size_t n = (size_t)graph->n_nodes;
  *all = (dependencies){.graph = graph};
  all->first = laci_alloc(n + 1, sizeof *all->first);
  all->at = laci_alloc(n + 1, sizeof *all->at);
  if (!all->first || !all->at) return laci_fail_memory(err, "sorting the nodes");
  list_dependencies(all);
  for (size_t k = 0; k < n; k++) {
    all->first[k + 1] += all->first[k];
    all->at[k] = all->first[k];
  }
  all->list = laci_alloc(all->first[n], sizeof *all->list);
  if (!all->list) return laci_fail_memory(err, "sorting the nodes");
  list_dependencies(all);
  return LAC_OK;
}

/* ---- Sorting by a depth-first walk ---- */

typedef struct sorter {
  const laci_graph *graph;
  const dependencies *dependencies;
  uint8_t *state; /* [n_nodes] whether a node was not visited yet, is on the stack, or is done */
  size_t *next;   /* [n_nodes] for a node on the stack: which of its dependencies is visited next */
  int *stack;     /* [n_nodes] nodes whose dependencies are being visited */
  int *order;     /* [n_nodes] old ids in new order */
  int n_order;
} sorter;

/** For messages: returns the name of an output of `needed` that the node reads, or else the name of
 * the node `needed`. */
static const char *find_name_of_needed(const laci_graph *graph, const laci_node *node, int needed) {
  for (int at = 0; at < count_values_read(node); at++) {
    int value = value_read_at(node, at);
    if (value >= 0 && graph->values[value].producer == needed) return graph->values[value].name;
  }
  return graph->nodes[needed].name;
}

static lac_status visit_dependencies(sorter *s, int root, lac_error *err) {
  int depth = 0;
  s->stack[depth++] = root;
  s->state[root] = OPEN;
  while (depth > 0) {
    int n = s->stack[depth - 1];
    const laci_node *node = &s->graph->nodes[n];
    if (s->next[n] == s->dependencies->first[n + 1]) {
      s->state[n] = DONE;
      s->order[s->n_order++] = n;
      depth--;
      continue;
    }
    int needed = s->dependencies->list[s->next[n]++];
    if (s->state[needed] == DONE) continue;
    if (s->state[needed] == OPEN) {
      return laci_fail(err, LAC_BAD_FILE, "a cycle: %s (%s) needs '%s', which needs that node",
                       node->name, node->type, find_name_of_needed(s->graph, node, needed));
    }
    s->state[needed] = OPEN;
    s->stack[depth++] = needed;
  }
  return LAC_OK;
}

static void reorder_nodes(laci_graph *graph, const int *order, laci_node *scratch) {
  if (graph->n_nodes == 0) return; /* then nodes may be NULL */
  for (int n = 0; n < graph->n_nodes; n++) scratch[n] = graph->nodes[order[n]];
  memcpy(graph->nodes, scratch, (size_t)graph->n_nodes * sizeof *scratch);
  for (int n = 0; n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    for (int at = 0; at < node->n_outputs; at++) {
      if (node->outputs[at] >= 0) graph->values[node->outputs[at]].producer = n;
    }
  }
}

static void renumber_bodies(laci_graph *graph, const int *order, int *place) {
  for (int n = 0; n < graph->n_nodes; n++) place[order[n]] = n;
  for (int b = 0; b < graph->n_bodies; b++) {
    laci_body *body = &graph->bodies[b];
    if (body->begin >= 0) body->begin = place[body->begin];
    body->end = place[body->end];
  }
}

static lac_status sort_nodes(laci_graph *graph, lac_error *err) {
  size_t n = (size_t)graph->n_nodes;
  dependencies all;
  sorter s = {.graph = graph, .dependencies = &all};
  lac_status st = dependencies_init(&all, graph, err);
  laci_node *scratch = laci_alloc(n, sizeof *scratch);
  s.state = laci_alloc(n, sizeof *s.state);
  s.next = laci_alloc(n, sizeof *s.next);
  s.stack = laci_alloc(n, sizeof *s.stack);
  s.order = laci_alloc(n, sizeof *s.order);
  if (!st && (!scratch || !s.state || !s.next || !s.stack || !s.order))
    st = laci_fail_memory(err, "sorting the nodes");
  if (st) goto out;
  for (size_t k = 0; k < n; k++) s.next[k] = all.first[k];
  for (int root = 0; root < graph->n_nodes && !st; root++) {
    if (s.state[root] == UNSEEN) st = visit_dependencies(&s, root, err);
  }
  if (st) goto out;
  reorder_nodes(graph, s.order, scratch);
  renumber_bodies(graph, s.order, s.stack);
out:
  dependencies_clear(&all);
  laci_free(scratch);
  laci_free(s.state);
  laci_free(s.next);
  laci_free(s.stack);
  laci_free(s.order);
  return st;
}

/** Adds a reader to a value, once for each node: a node that reads the value twice is already the
 * last in the list. */
static void add_reader_once(laci_value *value, int *list, int node) {
  if (value->n_readers && list[value->n_readers - 1] == node) return;
  list[value->n_readers++] = node;
}

static lac_status list_readers(laci_graph *graph, lac_error *err) {
  size_t n_values = (size_t)graph->n_values, total = 0;
  size_t *first = laci_alloc(n_values + 1, sizeof *first);
  if (!first) return laci_fail_memory(err, "the readers of values");
  for (int n = 0; n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    for (int at = 0; at < count_values_read(node); at++) {
      int value = value_read_at(node, at);
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
    for (int at = 0; at < count_values_read(node); at++) {
      int value = value_read_at(node, at);
      if (value >= 0) add_reader_once(&graph->values[value], readers + first[value], n);
    }
  }
  laci_free(first);
  return LAC_OK;
}

lac_status laci_graph_finish(laci_graph *graph, lac_error *err) {
  lac_status st = check_values_are_defined(graph, err);
  if (!st) st = sort_nodes(graph, err);
  if (!st) st = list_readers(graph, err);
  return st;
}
