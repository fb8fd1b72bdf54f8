/* SPDX-License-Identifier: Apache-2.0
 * Parts of a network: which nodes compute some values from others, and these nodes as a graph. */
#include <string.h>

#include "base/budget.h"
#include "base/error.h"
#include "calibrate/network_in.h"
#include "graph/infer.h"
#include "tensor/buf.h"

/* Is the value's content known from inference, without running the network? This holds mostly for
 * sizes. */
static bool is_content_known(const laci_network *n, int value) {
  const laci_value *v = &n->graph.values[value];
  return v->stored < 0 && n->constant[value] && v->known && v->known->i;
}

static int *copy_ints(laci_arena *arena, const int *from, int count) {
  int *to = laci_arena_alloc(arena, (size_t)count + 1, sizeof *to);
  if (to && count > 0) memcpy(to, from, (size_t)count * sizeof *to);
  return to;
}

lac_status laci_part_find_nodes(laci_network *n, const bool *there, int n_wanted, const int *wanted,
                                laci_part *part, lac_error *err) {
  const laci_graph *graph = &n->graph;
  bool *need = laci_alloc((size_t)graph->n_values + 1, sizeof *need);
  int *nodes = laci_arena_alloc(&n->arena, (size_t)graph->n_nodes + 1, sizeof *nodes);
  int *inputs = laci_arena_alloc(&n->arena, (size_t)graph->n_values + 1, sizeof *inputs);
  *part = (laci_part){
      .product_only = -1, .n_outputs = n_wanted, .outputs = copy_ints(&n->arena, wanted, n_wanted)};
  if (!need || !nodes || !inputs || !part->outputs) {
    laci_free(need);
    return laci_fail_memory(err, "the parts of the network");
  }
  for (int i = 0; i < n_wanted; i++) need[wanted[i]] = true;
  int first = graph->n_nodes;
  for (int at = graph->n_nodes - 1; at >= 0; at--) {
    const laci_node *node = &graph->nodes[at];
    bool runs = false;
    for (int i = 0; i < node->n_outputs && !runs; i++) {
      int v = node->outputs[i];
      runs = v >= 0 && need[v] && !there[v] && !is_content_known(n, v);
    }
    if (!runs) continue;
    nodes[--first] = at;
    for (int i = 0; i < node->n_inputs; i++)
      if (node->inputs[i] >= 0) need[node->inputs[i]] = true;
  }
  for (int v = 0; v < graph->n_values; v++)
    if (need[v] && there[v]) inputs[part->n_inputs++] = v;
  part->n_nodes = graph->n_nodes - first;
  part->nodes = nodes + first;
  part->inputs = inputs;
  laci_free(need);
  return LAC_OK;
}

/* ---- Building the graph of a part ---- */

static lac_status add_stored_tensor(const laci_network *n, laci_graph *graph, int value,
                                    const uint8_t *bytes, lac_error *err) {
  const laci_stored *from = &n->graph.stored[n->graph.values[value].stored];
  const char *name = n->graph.values[value].name;
  int id;
  if (laci_graph_find_value(graph, name) >= 0) return LAC_OK;
  return laci_graph_add_stored(graph,
                               &(laci_stored){.name = name,
                                              .dtype = from->dtype,
                                              .shape = from->shape,
                                              .bytes = bytes,
                                              .size_bytes = from->size_bytes},
                               &id, err);
}

static lac_status add_input(const laci_network *n, laci_graph *graph, int value, lac_error *err) {
  const laci_value *v = &n->graph.values[value];
  return laci_graph_add_input(graph, v->name, &v->type, err);
}

static lac_status add_known_constant(const laci_network *n, laci_graph *graph, int value,
                                     lac_error *err) {
  const laci_value *v = &n->graph.values[value];
  const laci_buf *known = v->known;
  size_t size = lac_dtype_size(known->dtype);
  int id;
  if (laci_graph_find_value(graph, v->name) >= 0) return LAC_OK;
  uint8_t *bytes = laci_arena_alloc(graph->arena, (size_t)known->count + 1, size);
  if (!bytes) return laci_fail_memory(err, "a part of the network");
  laci_write_i64(known->dtype, known->i, known->count, bytes);
  return laci_graph_add_stored(graph,
                               &(laci_stored){.name = v->name,
                                              .dtype = known->dtype,
                                              .shape = known->shape,
                                              .bytes = bytes,
                                              .size_bytes = (size_t)known->count * size},
                               &id, err);
}

static lac_status add_node(const laci_network *n, laci_graph *graph, const laci_node *node,
                           const uint8_t *const *weights, lac_error *err) {
  const laci_graph *from = &n->graph;
  int *ids = laci_alloc((size_t)(node->n_inputs + node->n_outputs) + 1, sizeof *ids);
  lac_status st = ids ? LAC_OK : laci_fail_memory(err, "a part of the network");
  for (int i = 0; i < node->n_inputs && !st; i++) {
    int v = node->inputs[i];
    ids[i] = -1;
    if (v < 0) continue;
    int stored = from->values[v].stored;
    if (stored >= 0) st = add_stored_tensor(n, graph, v, weights[stored], err);
    else if (is_content_known(n, v)) st = add_known_constant(n, graph, v, err);
    if (!st) ids[i] = laci_graph_intern_value(graph, from->values[v].name);
  }
  for (int i = 0; i < node->n_outputs && !st; i++) {
    int v = node->outputs[i];
    ids[node->n_inputs + i] = v < 0 ? -1 : laci_graph_intern_value(graph, from->values[v].name);
  }
  int id;
  if (!st) {
    laci_node copy = *node;
    copy.inputs = ids;
    copy.outputs = ids + node->n_inputs;
    st = laci_graph_add_node_copy(graph, &copy, &id, err);
  }
  laci_free(ids);
  return st;
}

lac_status laci_part_build_graph(const laci_network *n, const laci_part *part,
                                 const uint8_t *const *weights, laci_graph **out, lac_error *err) {
  laci_graph *graph;
  *out = NULL;
  lac_status st = laci_graph_create(&graph, err);
  if (st) return st;
  for (int i = 0; i < part->n_inputs && !st; i++) st = add_input(n, graph, part->inputs[i], err);
  for (int i = 0; i < part->n_nodes && !st; i++) {
    laci_node node = n->graph.nodes[part->nodes[i]];
    if (part->nodes[i] == part->product_only && node.n_inputs > 2) node.n_inputs = 2;
    st = add_node(n, graph, &node, weights, err);
  }
  for (int i = 0; i < part->n_outputs && !st; i++)
    st = laci_graph_add_output(graph, n->graph.values[part->outputs[i]].name, err);
  if (!st) st = laci_graph_finish(graph, err);
  if (!st) st = laci_graph_infer(graph, NULL, 0, err);
  if (st) laci_graph_destroy(graph);
  else *out = graph;
  return st;
}

/* ---- Memory ---- */

static bool is_in_list(const int *list, int n, int value) {
  for (int i = 0; i < n; i++)
    if (list[i] == value) return true;
  return false;
}

/* Returns the index of the last of the part's nodes that reads the value. */
static int find_last_reader(const laci_network *n, const laci_part *part, int value) {
  for (int at = part->n_nodes - 1; at >= 0; at--) {
    const laci_node *node = &n->graph.nodes[part->nodes[at]];
    if (is_in_list(node->inputs, node->n_inputs, value)) return at;
  }
  return -1;
}

uint64_t laci_part_memory_bytes(const laci_network *n, const laci_part *part) {
  uint64_t live = 0, most = 0, stored = 0;
  for (int at = 0; at < part->n_nodes; at++) {
    const laci_node *node = &n->graph.nodes[part->nodes[at]];
    for (int i = 0; i < node->n_outputs; i++) {
      int v = node->outputs[i];
      if (v >= 0 && !is_in_list(part->outputs, part->n_outputs, v))
        live += laci_network_value_bytes(n, v);
    }
    if (live > most) most = live;
    for (int i = 0; i < node->n_inputs; i++) {
      int v = node->inputs[i];
      if (v < 0) continue;
      if (n->graph.values[v].stored >= 0) {
        stored += laci_network_value_bytes(n, v);
        continue;
      }
      int producer = n->graph.values[v].producer;
      bool inside = producer >= 0 && is_in_list(part->nodes, part->n_nodes, producer) &&
                    !is_in_list(part->outputs, part->n_outputs, v) &&
                    !is_in_list(node->inputs, i, v);
      if (inside && find_last_reader(n, part, v) == at) live -= laci_network_value_bytes(n, v);
    }
  }
  return laci_count_bytes_saturated(1, (size_t)(most + stored));
}
