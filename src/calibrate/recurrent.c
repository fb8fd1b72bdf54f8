/* SPDX-License-Identifier: Apache-2.0 */
#include "calibrate/recurrent_in.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "graph/infer.h"
#include "graph/op.h"
#include "graph/ops.h"

enum { X, W, R, LENGTHS = 4, INITIAL_H };

bool laci_node_is_recurrent(const laci_node *node) {
  return node->op == &laci_op_lstm || node->op == &laci_op_gru || node->op == &laci_op_rnn;
}

/* ---- States ---- */

int laci_network_states_of(const laci_network *n, int node) {
  return n->states ? n->states[node] - 1 : -1;
}

static int input_of(const laci_node *node, int port) {
  return port < node->n_inputs ? node->inputs[port] : -1;
}

/* Makes all arrays of nodes and values larger by n_nodes and n_values elements. */
static lac_status grow_network(laci_network *n, int n_nodes, int n_values, lac_error *err) {
  laci_graph *graph = &n->graph;
  const size_t old = (size_t)graph->n_values + 1, all = old + (size_t)n_values;
  laci_node *nodes =
      laci_arena_alloc(&n->arena, (size_t)(graph->n_nodes + n_nodes) + 1, sizeof *nodes);
  laci_value *values = laci_resize(graph->values, old, all, sizeof *values);
  if (values) graph->values = values;
  bool *constant = laci_resize(n->constant, old, all, sizeof *constant);
  if (constant) n->constant = constant;
  const char **refusal = laci_resize(n->refusal, old, all, sizeof *refusal);
  if (refusal) n->refusal = refusal;
  n->states = laci_arena_alloc(&n->arena, (size_t)(graph->n_nodes + n_nodes) + 1, sizeof(int));
  if (!nodes || !values || !constant || !refusal || !n->states)
    return laci_fail_memory(err, "the states of recurrent layers");
  memcpy(nodes, graph->nodes, (size_t)graph->n_nodes * sizeof *nodes);
  graph->nodes = nodes;
  return LAC_OK;
}

static lac_status add_reader(laci_network *n, int value, int node, lac_error *err) {
  if (value < 0) return LAC_OK;
  laci_value *v = &n->graph.values[value];
  int *readers = laci_arena_alloc(&n->arena, (size_t)v->n_readers + 1, sizeof *readers);
  if (!readers) return laci_fail_memory(err, v->name);
  if (v->n_readers > 0) memcpy(readers, v->readers, (size_t)v->n_readers * sizeof *readers);
  readers[v->n_readers] = node;
  v->readers = readers;
  v->n_readers++;
  return LAC_OK;
}

/* Adds a node that outputs one new value of this shape. *output: its index. */
static lac_status add_node(laci_network *n, const laci_node *node, const laci_type *type,
                           const char *what, int *output, lac_error *err) {
  laci_graph *graph = &n->graph;
  char text[256];
  int *ports = laci_arena_alloc(&n->arena, (size_t)node->n_inputs + 2, sizeof *ports);
  (void)snprintf(text, sizeof text, "%.200s/lacuna %s", node->name, what);
  const char *name = laci_arena_text(&n->arena, text);
  if (!ports || !name) return laci_fail_memory(err, node->name);
  if (node->n_inputs > 0) memcpy(ports, node->inputs, (size_t)node->n_inputs * sizeof *ports);
  const int at = graph->n_nodes++, value = graph->n_values++;
  int *outputs = ports + node->n_inputs;
  *outputs = *output = value;
  graph->nodes[at] = *node;
  graph->nodes[at].name = name;
  graph->nodes[at].inputs = ports;
  graph->nodes[at].n_outputs = 1;
  graph->nodes[at].outputs = outputs;
  graph->values[value] = (laci_value){.name = name, .type = *type, .producer = at, .stored = -1};
  lac_status st = LAC_OK;
  for (int i = 0; i < node->n_inputs && !st; i++) st = add_reader(n, ports[i], at, err);
  return st;
}

/* Returns why the node cannot be run; NULL: it can. */
static const char *find_refusal(const laci_network *n, const laci_node *node) {
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i] >= 0 && n->refusal[node->outputs[i]]) return n->refusal[node->outputs[i]];
  return NULL;
}

static lac_status add_states_of_node(laci_network *n, int at, lac_error *err) {
  const laci_node from = n->graph.nodes[at];
  const laci_value *values = n->graph.values;
  const laci_type *x = &values[from.inputs[X]].type;
  const laci_shape *r = &values[from.inputs[R]].type.shape;
  if (x->shape.rank != 3 || r->rank != 3 || !laci_shape_is_known(&x->shape)) return LAC_OK;
  const bool batch_first = laci_node_int(&from, "layout", 0) != 0;
  const int64_t time = x->shape.dims[batch_first ? 1 : 0],
                batch = x->shape.dims[batch_first ? 0 : 1], directions = r->dims[0],
                hidden = r->dims[2];
  laci_type after = {x->dtype, {4, {time, directions, batch, hidden}}},
            before = {x->dtype, {4, {time, batch, directions, hidden}}};
  if (batch_first) after.shape = (laci_shape){4, {batch, time, directions, hidden}};
  const char *refusal = find_refusal(n, &from);
  int y, states;
  lac_status st = add_node(n, &from, &after, "copy", &y, err);
  if (st) return st;
  laci_node order = from;
  const int inputs[] = {y, input_of(&from, INITIAL_H), input_of(&from, LENGTHS)};
  order.type = "RecurrentStates";
  order.domain = "lacuna";
  order.version = 0;
  order.op = &laci_op_recurrent_states;
  order.n_inputs = 3;
  order.inputs = inputs;
  st = add_node(n, &order, &before, "states", &states, err);
  n->refusal[y] = n->refusal[states] = refusal;
  n->states[at] = states + 1;
  return st;
}

lac_status laci_network_add_states(laci_network *n, const int *nodes, int n_nodes, lac_error *err) {
  if (n_nodes == 0) return LAC_OK;
  lac_status st = grow_network(n, 2 * n_nodes, 2 * n_nodes, err);
  for (int i = 0; i < n_nodes && !st; i++) {
    const laci_node *node = &n->graph.nodes[nodes[i]];
    if (node->body == 0 && node->n_inputs > R && node->inputs[X] >= 0 && node->inputs[R] >= 0)
      st = add_states_of_node(n, nodes[i], err);
  }
  return st;
}

/* ---- Layers ---- */

const char *laci_recurrent_layer_init(const laci_network *n, laci_matrix_layer *l) {
  const laci_shape *weight = &n->graph.stored[l->stored].shape,
                   *x = &n->graph.values[l->value].type.shape;
  if (weight->rank != 3 || !laci_shape_is_known(x)) return "its sizes are not known";
  const bool has_groups = l->port == R;
  l->is_recurrent = true;
  l->rows = has_groups ? weight->dims[1] : weight->dims[0] * weight->dims[1];
  l->columns = l->channels = weight->dims[2];
  l->taps = 1;
  l->k_stride = weight->dims[2];
  l->c_stride = 1;
  for (int i = 0; i < LACI_UNFOLD_AXES; i++)
    l->unfold.axis[i] = (laci_unfold_axis){1, 1, 1, 1, 1, 0};
  l->unfold.groups = has_groups ? weight->dims[0] : 1;
  l->unfold.channels = l->channels;
  l->unfold.images = x->dims[0] * x->dims[1];
  return NULL;
}

/* ---- The product alone ---- */

/* The product is a convolution of one tap: x [images, groups * channels, 1]. */
lac_status laci_recurrent_build_product(const laci_network *n, const laci_matrix_layer *l,
                                        int64_t images, const uint8_t *weight, laci_graph **out,
                                        lac_error *err) {
  const laci_stored *stored = &n->graph.stored[l->stored];
  const int64_t groups = l->unfold.groups;
  const laci_type x = {n->graph.values[l->value].type.dtype,
                       {3, {images, groups * l->channels, 1}}};
  const laci_stored matrix = {.name = "w",
                              .dtype = stored->dtype,
                              .shape = {3, {groups * l->rows, l->channels, 1}},
                              .bytes = weight,
                              .size_bytes = stored->size_bytes};
  laci_graph *graph;
  int id;
  *out = NULL;
  lac_status st = laci_graph_create(&graph, err);
  if (st) return st;
  st = laci_graph_add_input(graph, "x", &x, err);
  if (!st) st = laci_graph_add_stored(graph, &matrix, &id, err);
  const int inputs[] = {laci_graph_intern_value(graph, "x"), laci_graph_intern_value(graph, "w")};
  const int outputs[] = {laci_graph_intern_value(graph, "y")};
  const laci_attr group = laci_attr_int("group", groups);
  if (!st)
    st = laci_graph_add_node(graph,
                             &(laci_node){.name = n->graph.nodes[l->node].name,
                                          .type = "Conv",
                                          .domain = "",
                                          .version = 11,
                                          .n_inputs = 2,
                                          .inputs = inputs,
                                          .n_outputs = 1,
                                          .outputs = outputs,
                                          .n_attrs = 1,
                                          .attrs = &group},
                             &id, err);
  if (!st) st = laci_graph_add_output(graph, "y", err);
  if (!st) st = laci_graph_finish(graph, err);
  if (!st) st = laci_graph_infer(graph, NULL, 0, err);
  if (st) laci_graph_destroy(graph);
  else *out = graph;
  return st;
}
