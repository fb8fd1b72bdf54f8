/* SPDX-License-Identifier: Apache-2.0
 * Finds the values whose contents matter (content.h). It visits the nodes once, from the last to
 * the first, since readers come after producers. All nodes in bodies of loops count as mattering,
 * so iterations need not be followed. */
#include "graph/content.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "tensor/buf.h"

/* flags of a value during the walk. MATTERS: its content matters; SIZED: a node reads its shape */
enum { MATTERS = 1, SIZED = 2 };

/* Is it one of the operators that are not declared, but known to read only type and shape of their
 * input? */
static bool is_undeclared_shape_reader(const laci_node *node) {
  static const char *const types[] = {"OptionalHasElement", "RandomNormalLike",
                                      "RandomUniformLike"};
  bool foreign = node->domain[0] && strcmp(node->domain, "ai.onnx") != 0;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    if (!foreign && !node->fault && strcmp(node->type, types[i]) == 0) return true;
  }
  return false;
}

bool laci_node_reads_port_content(const laci_node *node, int port) {
  if (!node->op) return !is_undeclared_shape_reader(node);
  return !node->op->shape_only && (port > 31 || !(node->op->shape_inputs >> port & 1));
}

bool laci_node_affects_outputs(const laci_graph *graph, const uint8_t *matters, int node) {
  const laci_node *one = &graph->nodes[node];
  if (one->body || one->frames) return true;
  for (int i = 0; i < one->n_outputs; i++) {
    if (one->outputs[i] >= 0 && (matters[one->outputs[i]] & MATTERS)) return true;
  }
  return false;
}

/* May the shape of an output depend on the content of an input, floats included? */
static bool has_data_dependent_sizes(const laci_graph *graph, const laci_node *node) {
  if (node->op) return node->op->sizes_from_data;
  bool known = true; /* are the declared shapes of all outputs known? */
  for (int i = 0; i < node->n_outputs; i++) {
    if (node->outputs[i] >= 0)
      known &= laci_shape_is_known(&graph->values[node->outputs[i]].type.shape);
  }
  return !known;
}

static bool is_integer_value(const laci_graph *graph, int value) {
  return !laci_dtype_is_float(graph->values[value].type.dtype);
}

/* Marks the inputs of node n: which contents and shapes it reads, if its outputs or their shapes
 * matter. */
static void mark_inputs_of_node(const laci_graph *graph, int n, uint8_t *found) {
  const laci_node *node = &graph->nodes[n];
  bool live = laci_node_affects_outputs(graph, found, n), sized = false;
  for (int i = 0; i < node->n_outputs; i++)
    sized |= node->outputs[i] >= 0 && (found[node->outputs[i]] & SIZED);
  if (!live && !sized) return;
  if (!live &&
      has_data_dependent_sizes(graph, node)) { /* only the shapes of the outputs matter, but they
                                                  depend on the contents of the inputs */
    for (int i = 0; i < node->n_outputs; i++) {
      if (node->outputs[i] >= 0) found[node->outputs[i]] |= MATTERS;
    }
    live = true;
  }
  for (int i = 0; i < node->n_inputs; i++) {
    if (node->inputs[i] < 0) continue;
    /* integer inputs may be sizes, axes or counts, so they can decide a shape */
    bool read =
        laci_node_reads_port_content(node, i) && (live || is_integer_value(graph, node->inputs[i]));
    found[node->inputs[i]] |= read ? MATTERS | SIZED : SIZED;
  }
  for (int i = 0; i < node->n_captures; i++) found[node->captures[i]] |= MATTERS | SIZED;
}

lac_status laci_find_values_affecting_outputs(const laci_graph *graph, uint8_t **matters,
                                              lac_error *err) {
  uint8_t *found = *matters = laci_alloc((size_t)graph->n_values, 1);
  if (!found) return laci_fail_memory(err, "the values that matter");
  for (int v = 0; v < graph->n_values; v++)
    found[v] = graph->values[v].is_output || graph->values[v].n_readers == 0;
  for (int n = graph->n_nodes - 1; n >= 0; n--) mark_inputs_of_node(graph, n, found);
  for (int v = 0; v < graph->n_values; v++) found[v] &= MATTERS;
  return LAC_OK;
}

bool laci_node_reads_content(const laci_graph *graph, const uint8_t *matters, int node, int value) {
  const laci_node *one = &graph->nodes[node];
  bool reads = false;
  for (int i = 0; i < one->n_inputs; i++)
    reads |= one->inputs[i] == value && laci_node_reads_port_content(one, i);
  for (int i = 0; i < one->n_captures; i++) reads |= one->captures[i] == value;
  bool sizes = matters[value] && is_integer_value(graph, value);
  return reads && (sizes || laci_node_affects_outputs(graph, matters, node));
}

int laci_count_content_readers(const laci_graph *graph, const uint8_t *matters, int value) {
  const laci_value *v = &graph->values[value];
  int n = 0;
  for (int i = 0; i < v->n_readers; i++)
    n += laci_node_reads_content(graph, matters, v->readers[i], value);
  return n;
}
