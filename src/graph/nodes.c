/* SPDX-License-Identifier: Apache-2.0
 * Builds a graph: adds nodes, copies their attributes, and finds their operators.
 *
 * This file looks operators up in the table of op.c, so the files of operators never call it. Rules
 * of gradients add nodes by the builder (gradient_in.h). Next: node.c, sort.c. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/graph_in.h"
#include "graph/op.h"
#include "tensor/buf.h"

static const void *copy_array(laci_graph *graph, const void *from, size_t n, size_t size) {
  void *copy = laci_arena_alloc(graph->arena, n, size);
  if (copy && n) memcpy(copy, from, n * size);
  return copy;
}

static const char *const *copy_texts(laci_graph *graph, const char *const *texts, size_t n) {
  const char **copy = laci_arena_alloc(graph->arena, n, sizeof *copy);
  for (size_t at = 0; copy && at < n; at++) {
    copy[at] = laci_arena_text(graph->arena, texts[at]);
    if (!copy[at]) return NULL;
  }
  return copy;
}

static bool copy_attr(laci_graph *graph, laci_attr *to, const laci_attr *from) {
  *to = *from;
  to->name = laci_arena_text(graph->arena, from->name);
  bool ok = to->name != NULL;
  if (from->text) ok &= (to->text = laci_arena_text(graph->arena, from->text)) != NULL;
  if (from->ints)
    ok &= (to->ints = copy_array(graph, from->ints, from->n, sizeof *to->ints)) != NULL;
  if (from->floats) {
    ok &= (to->floats = copy_array(graph, from->floats, from->n, sizeof *to->floats)) != NULL;
  }
  if (from->texts) ok &= (to->texts = copy_texts(graph, from->texts, from->n)) != NULL;
  return ok;
}

static const laci_attr *copy_attrs(laci_graph *graph, const laci_node *node) {
  laci_attr *attrs = laci_arena_alloc(graph->arena, (size_t)node->n_attrs, sizeof *attrs);
  for (int at = 0; attrs && at < node->n_attrs; at++) {
    if (!copy_attr(graph, &attrs[at], &node->attrs[at])) return NULL;
  }
  return attrs;
}

/** Returns a name that no node has: the wanted one, or TYPE_NUMBER, with a suffix where even that
 * is taken. */
static const char *make_unique_name(laci_graph *graph, const char *wanted, const char *type) {
  char text[512];
  bool named = wanted && wanted[0];
  if (named && laci_name_find(&graph->own->nodes, wanted) < 0) {
    return laci_arena_text(graph->arena, wanted);
  }
  /* The count of nodes is most likely a free number, so this loop is short. */
  for (int number = graph->n_nodes;; number++) {
    (void)snprintf(text, sizeof text, "%.480s_%d", named ? wanted : type, number);
    if (laci_name_find(&graph->own->nodes, text) < 0) return laci_arena_text(graph->arena, text);
  }
}

static lac_status check_value_ids(const laci_graph *graph, const laci_node *node, lac_error *err) {
  for (int at = 0; at < node->n_inputs + node->n_outputs + node->n_captures; at++) {
    int in = node->n_inputs, out = in + node->n_outputs;
    int id = at < in    ? node->inputs[at]
             : at < out ? node->outputs[at - in]
                        : node->captures[at - out];
    if (id < (at < out ? -1 : 0) || id >= graph->n_values) {
      return laci_fail(err, LAC_INTERNAL, "%s: value %d of %d", node->type, id, graph->n_values);
    }
  }
  return LAC_OK;
}

/** Allocates entries of graph->bufs for all attribute tensors of the node, before the graph takes
 * the first of them. */
static bool reserve_tensor_entries(laci_graph *graph, const laci_node *node) {
  while (graph->buf_capacity < graph->n_bufs + (size_t)node->n_attrs) {
    void *array = graph->bufs;
    if (!laci_grow(&array, graph->buf_capacity, &graph->buf_capacity, sizeof *graph->bufs))
      return false;
    graph->bufs = array;
  }
  return true;
}

static lac_status define_outputs(laci_graph *graph, const laci_node *node, lac_error *err) {
  lac_status st = LAC_OK;
  int defined = 0;
  for (; defined < node->n_outputs && !st; defined++) {
    if (node->outputs[defined] < 0) continue;
    st = laci_graph_check_value_undefined(graph, node->outputs[defined], err);
    if (!st) graph->values[node->outputs[defined]].producer = graph->n_nodes;
  }
  for (int at = 0; st && at < defined - 1; at++) {
    if (node->outputs[at] >= 0) graph->values[node->outputs[at]].producer = -1;
  }
  return st;
}

static bool copy_node(laci_graph *graph, laci_node *to, const laci_node *from) {
  *to = *from;
  to->name = make_unique_name(graph, from->name, from->type);
  to->type = laci_arena_text(graph->arena, from->type);
  to->domain = laci_arena_text(graph->arena, from->domain ? from->domain : "");
  to->inputs = copy_array(graph, from->inputs, (size_t)from->n_inputs, sizeof *to->inputs);
  to->outputs = copy_array(graph, from->outputs, (size_t)from->n_outputs, sizeof *to->outputs);
  to->captures = copy_array(graph, from->captures, (size_t)from->n_captures, sizeof *to->captures);
  to->attrs = copy_attrs(graph, from);
  if (from->assume) to->assume = laci_arena_text(graph->arena, from->assume);
  bool ok = to->name && to->type && to->domain && to->inputs && to->outputs && to->captures;
  return ok && to->attrs && (to->assume || !from->assume);
}

lac_status laci_graph_add_node(laci_graph *graph, const laci_node *node, int *id, lac_error *err) {
  laci_node copy;
  void *array = graph->nodes;
  lac_status st = check_value_ids(graph, node, err);
  if (st) return st;
  if (!laci_grow(&array, (size_t)graph->n_nodes, &graph->node_capacity, sizeof *graph->nodes)) {
    return laci_fail_memory(err, "a node");
  }
  graph->nodes = array;
  if (!reserve_tensor_entries(graph, node) || !copy_node(graph, &copy, node)) {
    return laci_fail_memory(err, "a node");
  }
  graph->nodes[graph->n_nodes] =
      copy; /* the message about an output listed twice names this node */
  st = define_outputs(graph, &copy, err);
  if (st) return laci_fail_with_prefix(err, st, "%s", copy.name);
  if (!laci_name_add(&graph->own->nodes, copy.name, graph->n_nodes)) {
    for (int at = 0; at < copy.n_outputs; at++) {
      if (copy.outputs[at] >= 0) graph->values[copy.outputs[at]].producer = -1;
    }
    return laci_fail_memory(err, "a node");
  }
  for (int at = 0; at < node->n_attrs; at++) {
    if (node->attrs[at].tensor) graph->bufs[graph->n_bufs++] = node->attrs[at].tensor;
  }
  copy.body = graph->own->body;
  copy.op = node->fault ? NULL : laci_op_find(copy.type, copy.domain);
  copy.of_op = laci_op_find(laci_node_text(&copy, "of", ""), NULL);
  graph->nodes[graph->n_nodes] = copy;
  *id = graph->n_nodes++;
  return LAC_OK;
}

static lac_status copy_tensor(const laci_buf *from, laci_buf **copy, lac_error *err) {
  lac_status st = laci_buf_create(from->dtype, &from->shape, copy, err);
  size_t n = (size_t)from->count;
  if (!st && from->f && n) memcpy((*copy)->f, from->f, n * sizeof *from->f);
  if (!st && from->i && n) memcpy((*copy)->i, from->i, n * sizeof *from->i);
  return st;
}

lac_status laci_graph_add_node_copy(laci_graph *graph, const laci_node *node, int *id,
                                    lac_error *err) {
  laci_attr *attrs = laci_alloc((size_t)node->n_attrs + 1, sizeof *attrs);
  lac_status st = attrs ? LAC_OK : laci_fail_memory(err, "a node");
  for (int at = 0; at < node->n_attrs && !st; at++) {
    laci_buf *tensor = NULL;
    attrs[at] = node->attrs[at];
    if (attrs[at].tensor) st = copy_tensor(attrs[at].tensor, &tensor, err);
    attrs[at].tensor = tensor;
  }
  laci_node copy = *node;
  copy.attrs = attrs;
  if (!st) st = laci_graph_add_node(graph, &copy, id, err);
  for (int at = 0; st && attrs && at < node->n_attrs; at++)
    if (attrs[at].tensor != node->attrs[at].tensor) laci_buf_destroy(attrs[at].tensor);
  laci_free(attrs);
  return st;
}
