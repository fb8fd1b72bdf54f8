/* SPDX-License-Identifier: Apache-2.0
 * Chooses which values are quantized: the input data of layers, and what these are computed from in
 * integers.
 *
 * Runtimes compute some nodes between layers in integers: a convolution with the activation after
 * it, sums, moves of elements, and functions of one value, which are tables of its integers. A
 * result of such a node is quantized only if a layer, or another such node, reads it as integers.
 * Else it stays in floats: rounding it would cost precision, and no runtime would be faster.
 *
 * A value that only rearranges another value's elements shares its scale, so that a runtime only
 * moves bytes. */
#include <string.h>

#include "base/error.h"
#include "graph/op.h"
#include "quantize/quantize_in.h"

static const char *const ends[] = {"Relu", "Clip", NULL}; /* activations that only clip. The
                                                             quantizer clips, too */
static const char *const moves[] = {"MaxPool", "Reshape",   "Flatten", "Transpose",
                                    "Squeeze", "Unsqueeze", "Slice",   NULL};
static const char *const sums[] = {"Add",    "Mul", "AveragePool", "GlobalAveragePool",
                                   "Concat", NULL};

/** What could be quantized. */
typedef struct marking {
  laci_quantizing *q;
  bool *can;    /* [n_values] true: the value could be quantized where it is computed */
  int *made_of; /* [n_values] the value that could be quantized and from which alone this one is
                   computed, element by element; -1: there is none */
  int *ends_of; /* [n_nodes] result of each convolution and sum that could be in integers, after its
                   activation; -1: there is none */
} marking;

/* ---- What could be quantized ---- */

/* Returns the result of the activation that follows `value`, if a runtime fuses it into the node
   that computes `value`; else `value`. */
static int find_value_after_activation(const laci_quantizing *q, int value) {
  int reader = laci_quantize_find_only_reader(q, value);
  if (reader < 0) return value;
  const laci_node *node = &q->graph->nodes[reader];
  bool ends_it = laci_quantize_is_type_in_list(node, ends) && node->inputs[0] == value &&
                 laci_quantize_is_quantizable(q, node->outputs[0]);
  return ends_it ? node->outputs[0] : value;
}

static void note_result(marking *m, int node, int value) {
  int end = find_value_after_activation(m->q, value);
  if (!laci_quantize_is_quantizable(m->q, end) || m->q->graph->values[end].is_output) return;
  m->can[end] = true;
  m->ends_of[node] = end;
}

static void mark_layer_values(marking *m) {
  laci_quantizing *q = m->q;
  for (int l = 0; l < q->n_layers; l++) {
    const laci_quantize_layer *layer = &q->layers[l];
    const laci_node *node = &q->graph->nodes[layer->node];
    if (layer->reason) continue;
    q->wanted[node->inputs[layer->other]] = m->can[node->inputs[layer->other]] = true;
    q->reads[layer->node] = true;
    if (!laci_node_is(node, "Conv") && !laci_node_is(node, "ConvTranspose")) continue;
    note_result(m, layer->node,
                layer->norm >= 0 ? q->graph->nodes[layer->norm].outputs[0] : node->outputs[0]);
  }
}

/* Does the node pad with zeros? It can then run on integers, since every scale represents 0
 * exactly. */
static bool is_padding_with_zeros(const laci_quantizing *q, const laci_node *node) {
  if (!laci_node_is(node, "Pad") ||
      strcmp(laci_node_text(node, "mode", "constant"), "constant") != 0)
    return false;
  int fill = node->n_inputs > 2 ? node->inputs[2] : -1;
  if (fill < 0) return true;
  if (!laci_quantize_is_stored_constant(q, fill)) return false;
  const laci_stored *stored = &q->graph->stored[q->graph->values[fill].stored];
  static const uint8_t zero[4];
  return stored->size_bytes == sizeof zero && memcmp(stored->bytes, zero, sizeof zero) == 0;
}

/* Does the node only move elements, so that it can run on integers? */
static bool is_only_moving_elements(const laci_quantizing *q, const laci_node *node) {
  return (laci_quantize_is_type_in_list(node, moves) || is_padding_with_zeros(q, node)) &&
         laci_quantize_is_quantizable(q, node->inputs[0]) &&
         laci_quantize_is_quantizable(q, node->outputs[0]);
}

/* Are all inputs values that could be quantized, or functions of one such value each, which are
 * tables of its integers? */
static bool are_inputs_quantizable(const marking *m, const laci_node *node) {
  for (int i = 0; i < node->n_inputs; i++) {
    const int value = node->inputs[i];
    if (value < 0 || !laci_quantize_is_quantizable(m->q, value)) return false;
    if (!m->can[value] && m->made_of[value] < 0) return false;
  }
  return node->n_inputs > 0;
}

/* Returns the value that could be quantized and of which alone the node computes a function,
 * element by element, with constants of one number; -1: there is none. */
static int find_only_source(const marking *m, const laci_node *node) {
  const laci_graph *graph = m->q->graph;
  int source = -1;
  if (node->n_outputs != 1 || !node->op || !laci_op_is_elementwise(node->op)) return -1;
  for (int i = 0; i < node->n_inputs; i++) {
    int value = node->inputs[i];
    if (value < 0) continue;
    const laci_value *v = &graph->values[value];
    if (v->stored >= 0 && laci_shape_count(&graph->stored[v->stored].shape) == 1) continue;
    int from = m->can[value] ? value : m->made_of[value];
    if (from < 0 || (source >= 0 && source != from)) return -1;
    source = from;
  }
  return source;
}

static void mark_what_could_be_quantized(marking *m) {
  const laci_graph *graph = m->q->graph;
  for (int n = 0; n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    if (!laci_quantize_is_node_in_file(m->q, n)) continue;
    const int source = find_only_source(m, node);
    if (node->n_outputs == 1) m->made_of[node->outputs[0]] = source;
    if (is_only_moving_elements(m->q, node)) m->can[node->outputs[0]] |= m->can[node->inputs[0]];
    else if (source < 0 && laci_quantize_is_type_in_list(node, sums) &&
             are_inputs_quantizable(m, node))
      note_result(m, n, node->outputs[0]);
  }
}

/* ---- What is read as integers ---- */

/* Marks what the node reads in q->wanted, if its result has the mark and it can run on integers.
 * A node that only moves elements shares one scale with its result. */
static void mark_inputs_of_integers(marking *m, int n) {
  laci_quantizing *q = m->q;
  const laci_node *node = &q->graph->nodes[n];
  const int end = m->ends_of[n];
  if (end >= 0 && q->wanted[end]) {
    q->for_all[end] = true;
    if (!laci_quantize_is_type_in_list(node, sums)) return;
    for (int i = 0; i < node->n_inputs; i++) q->wanted[node->inputs[i]] = true;
    q->reads[n] = true;
  } else if (laci_quantize_is_node_in_file(q, n) && is_only_moving_elements(q, node)) {
    int from = node->inputs[0], to = node->outputs[0];
    if (!q->wanted[to] || !m->can[from]) return;
    q->wanted[from] = q->reads[n] = true;
    q->like[to] = from;
  } else if (node->n_outputs == 1 && q->wanted[node->outputs[0]]) {
    int source = m->made_of[node->outputs[0]];
    if (source >= 0) q->wanted[source] = true;
  }
}

lac_status laci_quantize_mark_values(laci_quantizing *q, lac_error *err) {
  const int n_values = q->graph->n_values, n_nodes = q->graph->n_nodes;
  marking m = {.q = q,
               .can = laci_alloc((size_t)n_values + 1, sizeof *m.can),
               .made_of = laci_alloc((size_t)n_values + 1, sizeof *m.made_of),
               .ends_of = laci_alloc((size_t)n_nodes + 1, sizeof *m.ends_of)};
  const bool ok = m.can && m.made_of && m.ends_of;
  if (ok) {
    for (int v = 0; v < n_values; v++) m.made_of[v] = q->like[v] = -1;
    for (int n = 0; n < n_nodes; n++) m.ends_of[n] = -1;
    mark_layer_values(&m);
    mark_what_could_be_quantized(&m);
    for (int n = n_nodes - 1; n >= 0; n--) mark_inputs_of_integers(&m, n);
  }
  laci_free(m.can);
  laci_free(m.made_of);
  laci_free(m.ends_of);
  return ok ? LAC_OK : laci_fail_memory(err, "the quantized network");
}
