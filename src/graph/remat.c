/* SPDX-License-Identifier: Apache-2.0
 * What gradients read of the forward part, and the clones that they read instead.
 *
 * Where to cut is remat_plan.c's to say. Clones are appended; finishing the graph then sorts each
 * one before its first reader, which is as late as can be. Two gradients read a value by name only:
 * an engine's max pool and its Relu behind a batch norm leave what their gradients want (places,
 * bits), so that these gradients are pointed at whichever node is there, and keep nothing alive. */
#include "graph/remat.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "graph/op.h"
#include "graph/remat_in.h"

/** A norm whose batch's statistics come out. */
static bool is_norm(const laci_node *node) {
  return laci_node_is_ours(node, "BatchNormTrain") && node->n_inputs == 5 && node->n_outputs > 2 &&
         node->outputs[1] >= 0 && node->outputs[2] >= 0;
}

/* ---- What is there */

/** A node whose results inference knows is a constant to every engine. */
static bool is_constant(const laci_graph *graph, const laci_node *node) {
  for (int at = 0; at < node->n_outputs; at++) {
    int value = node->outputs[at];
    if (value >= 0 && !graph->values[value].known) return false;
  }
  return true;
}

static void find_live(laci_remat *r) {
  const laci_graph *graph = r->graph;
  for (int at = 0; at < graph->n_outputs; at++) r->n_uses[graph->outputs[at]]++;
  for (int n = graph->n_nodes - 1; n >= 0; n--) {
    const laci_node *node = &graph->nodes[n];
    bool used = false;
    for (int at = 0; at < node->n_outputs; at++)
      used |= node->outputs[at] >= 0 && r->n_uses[node->outputs[at]] > 0;
    r->live[n] = used && !is_constant(graph, node);
    for (int at = 0; at < node->n_inputs && r->live[n]; at++)
      if (node->inputs[at] >= 0) r->n_uses[node->inputs[at]]++;
    for (int at = 0; at < node->n_captures && r->live[n]; at++) r->n_uses[node->captures[at]]++;
  }
}

static void measure(laci_remat *r) {
  const laci_graph *graph = r->graph;
  for (int v = 0; v < graph->n_values; v++) r->last[v] = -1;
  for (int n = 0; n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    for (int at = 0; at < node->n_outputs && r->live[n]; at++) {
      if (node->outputs[at] < 0) continue;
      const laci_type *type = &graph->values[node->outputs[at]].type;
      int64_t size = type->dtype == LAC_DTYPE_F32 ? 4 : 8;
      r->bytes[node->outputs[at]] = size * laci_shape_count(&type->shape);
    }
    if (n >= r->n_forward || !r->live[n]) continue;
    for (int at = 0; at < node->n_inputs; at++)
      if (node->inputs[at] >= 0) r->last[node->inputs[at]] = n;
    for (int at = 0; at < node->n_captures; at++) r->last[node->captures[at]] = n;
  }
}

/* ---- What gradients read */

static const laci_node *producer_of(const laci_remat *r, int value) {
  int producer = value >= 0 ? r->graph->values[value].producer : -1;
  return producer >= 0 ? &r->graph->nodes[producer] : NULL;
}

/** The only live reader, or NULL. */
static const laci_node *only_reader(const laci_remat *r, int value) {
  const laci_value *v = &r->graph->values[value];
  const laci_node *reader = NULL;
  for (int at = 0; at < v->n_readers; at++)
    if (r->live[v->readers[at]]) reader = &r->graph->nodes[v->readers[at]];
  return r->n_uses[value] == 1 ? reader : NULL;
}

/** Are there forward max pools of the value, and does `all` hold: each of them has a clone? */
static bool has_pool(const laci_remat *r, int value, bool all) {
  const laci_value *v = &r->graph->values[value];
  bool found = false;
  for (int at = 0; at < v->n_readers; at++) {
    int n = v->readers[at];
    if (n >= r->n_forward || !r->live[n] || !laci_node_is(&r->graph->nodes[n], "MaxPool")) continue;
    if (all && !r->again[n]) return false;
    found = true;
  }
  return found;
}

/** Relu behind a batch norm, and their gradients behind each other: bits are enough. */
static bool is_norm_relu(const laci_remat *r, const laci_node *grad) {
  const laci_node *relu = producer_of(r, grad->inputs[1]);
  const laci_node *norm =
      relu && laci_node_is(relu, "Relu") ? producer_of(r, relu->inputs[0]) : NULL;
  const laci_node *next = only_reader(r, grad->outputs[0]);
  if (!norm || !is_norm(norm) || !next) return false;
  return r->n_uses[norm->outputs[0]] == 1 && laci_node_is_ours(next, "BatchNormTrainGrad") &&
         next->inputs[0] == grad->outputs[0] && next->inputs[1] == norm->inputs[0] &&
         next->inputs[3] == norm->outputs[1];
}

static void find_needed(laci_remat *r) {
  for (int n = r->n_forward; n < r->graph->n_nodes; n++) {
    const laci_node *node = &r->graph->nodes[n];
    if (!r->live[n]) continue;
    if (laci_node_is_ours(node, "MaxPoolGrad")) r->soft[n] = has_pool(r, node->inputs[1], false);
    if (laci_node_is_ours(node, "ReluGrad")) r->soft[n] = is_norm_relu(r, node);
    for (int at = 0; at < node->n_inputs; at++)
      if (node->inputs[at] >= 0 && !(at == 1 && r->soft[n])) r->needed[node->inputs[at]] = true;
    for (int at = 0; at < node->n_captures; at++) r->needed[node->captures[at]] = true;
  }
}

/** Nodes with bodies, which nobody copies. */
static bool can_clone(const laci_node *node) {
  bool can = node->op && node->n_captures == 0;
  for (int at = 0; at < node->n_attrs; at++) can = can && node->attrs[at].kind != LACI_ATTR_OTHER;
  return can;
}

bool laci_remat_always_kept(const laci_remat *r, int value) {
  const laci_node *node = producer_of(r, value);
  bool statistic = laci_node_is_ours(node, "BatchNormTrain") && node->outputs[0] != value;
  return statistic || r->graph->values[value].is_output || !can_clone(node);
}

void laci_remat_close(laci_remat *r) {
  const laci_graph *graph = r->graph;
  memset(r->again, 0, (size_t)graph->n_nodes * sizeof *r->again);
  for (int v = 0; v < graph->n_values; v++) {
    if (r->needed[v] && laci_remat_is_forward(r, v) && !r->keep[v])
      r->again[graph->values[v].producer] = true;
  }
  for (int n = r->n_forward - 1; n >= 0; n--) {
    const laci_node *node = &graph->nodes[n];
    for (int at = 0; at < node->n_inputs && r->again[n]; at++) {
      int value = node->inputs[at];
      if (value >= 0 && laci_remat_is_forward(r, value) && !r->keep[value])
        r->again[graph->values[value].producer] = true;
    }
  }
}

bool laci_remat_reads_clone(const laci_remat *r, int n, int port) {
  const laci_node *node = &r->graph->nodes[n];
  int value = node->inputs[port];
  if (value < 0 || !laci_remat_is_forward(r, value)) return false;
  if (!r->again[r->graph->values[value].producer]) return false;
  bool is_gradient = n >= r->n_forward;
  /* By the statistics a gradient finds its norm; the clone passes them on. */
  if (is_gradient && laci_node_is_ours(node, "BatchNormTrainGrad") && port > 2) return true;
  if (is_gradient && port == 1 && r->soft[n] && laci_node_is_ours(node, "MaxPoolGrad") &&
      !has_pool(r, value, true)) {
    return false;
  }
  return !r->keep[value];
}

/* ---- Clones */

typedef struct job {
  laci_remat *r;
  int *twin; /* [values that were there before] its clone; -1: none */
  lac_error *err;
} job;

/** A new value that repeats another, under a name that nobody has. */
static lac_status add_value(job *j, int value) {
  laci_graph *graph = j->r->graph;
  char text[520];
  (void)snprintf(text, sizeof text, "%.480s/again", graph->values[value].name);
  for (int suffix = 1; laci_graph_find_value(graph, text) >= 0; suffix++)
    (void)snprintf(text, sizeof text, "%.480s/again_%d", graph->values[value].name, suffix);
  int made = laci_graph_value(graph, text);
  if (made < 0) return laci_fail_memory(j->err, "values that are computed again");
  graph->values[made].type = graph->values[value].type;
  graph->values[made].repeats = value;
  j->twin[value] = made;
  return LAC_OK;
}

/** What input `port` of a gradient, or of a forward node's clone, is. */
static int read_by(const job *j, int n, int port) {
  int value = j->r->graph->nodes[n].inputs[port];
  return laci_remat_reads_clone(j->r, n, port) ? j->twin[value] : value;
}

/** inputs[n_inputs + 2] and outputs[n_outputs] have room. */
static lac_status add_clone(job *j, int n, int *inputs, int *outputs) {
  laci_graph *graph = j->r->graph;
  const laci_node node = graph->nodes[n]; /* the array moves */
  laci_node clone = node;
  char name[520];
  lac_status st = LAC_OK;
  int id;
  if (is_norm(&node)) {
    clone.n_inputs = 7;
    clone.n_outputs = 3;
  }
  for (int at = 0; at < node.n_inputs; at++) inputs[at] = read_by(j, n, at);
  if (clone.n_inputs != node.n_inputs) { /* the statistics that are known by now */
    inputs[3] = inputs[4] = -1;
    inputs[5] = node.outputs[1];
    inputs[6] = node.outputs[2];
  }
  for (int at = 0; at < clone.n_outputs && !st; at++) {
    outputs[at] = -1;
    if (node.outputs[at] < 0) continue;
    st = add_value(j, node.outputs[at]);
    outputs[at] = j->twin[node.outputs[at]];
  }
  (void)snprintf(name, sizeof name, "%.480s/again", node.name);
  clone.name = name;
  clone.inputs = inputs;
  clone.outputs = outputs;
  return st ? st : laci_graph_add_copy(graph, &clone, &id, j->err);
}

static lac_status add_clones(job *j, int *n_again) {
  const laci_graph *graph = j->r->graph;
  lac_status st = LAC_OK;
  *n_again = 0;
  for (int n = 0; n < j->r->n_forward && !st; n++) {
    if (!j->r->again[n]) continue;
    size_t n_in = (size_t)graph->nodes[n].n_inputs + 2;
    int *ids = laci_alloc(n_in + (size_t)graph->nodes[n].n_outputs, sizeof *ids);
    st = ids ? add_clone(j, n, ids, ids + n_in)
             : laci_fail_memory(j->err, "nodes that are computed again");
    laci_free(ids);
    ++*n_again;
  }
  return st;
}

static lac_status point_gradients(job *j, int n_nodes) {
  laci_graph *graph = j->r->graph;
  for (int n = j->r->n_forward; n < n_nodes; n++) {
    laci_node *node = &graph->nodes[n];
    int *inputs = laci_arena_alloc(&graph->arena, (size_t)node->n_inputs, sizeof *inputs);
    if (!inputs) return laci_fail_memory(j->err, "gradients");
    for (int at = 0; at < node->n_inputs; at++) inputs[at] = read_by(j, n, at);
    node->inputs = inputs;
  }
  return LAC_OK;
}

static lac_status rewrite(laci_remat *r, int *n_again, lac_error *err) {
  int n_nodes = r->graph->n_nodes;
  size_t n_values = (size_t)r->graph->n_values;
  job j = {.r = r, .twin = laci_alloc(n_values, sizeof *j.twin), .err = err};
  if (!j.twin) return laci_fail_memory(err, "values that are computed again");
  for (size_t v = 0; v < n_values; v++) j.twin[v] = -1;
  lac_status st = add_clones(&j, n_again);
  if (!st) st = point_gradients(&j, n_nodes);
  if (!st) st = laci_graph_finish(r->graph, err);
  laci_free(j.twin);
  return st;
}

/* ---- The whole */

static bool make_room(laci_remat *r) {
  size_t n_values = (size_t)r->graph->n_values, n_nodes = (size_t)r->graph->n_nodes;
  r->live = laci_alloc(n_nodes, sizeof *r->live);
  r->soft = laci_alloc(n_nodes, sizeof *r->soft);
  r->again = laci_alloc(n_nodes, sizeof *r->again);
  r->bytes = laci_alloc(n_values, sizeof *r->bytes);
  r->n_uses = laci_alloc(n_values, sizeof *r->n_uses);
  r->last = laci_alloc(n_values, sizeof *r->last);
  r->needed = laci_alloc(n_values, sizeof *r->needed);
  r->keep = laci_alloc(n_values, sizeof *r->keep);
  return r->live && r->soft && r->again && r->bytes && r->n_uses && r->last && r->needed && r->keep;
}

lac_status laci_remat_apply(laci_graph *graph, int n_forward, int *n_again, lac_error *err) {
  laci_remat r = {.graph = graph, .n_forward = n_forward};
  bool gains = false;
  lac_status st = make_room(&r) ? LAC_OK : laci_fail_memory(err, "computing again");
  *n_again = 0;
  if (!st) {
    find_live(&r);
    measure(&r);
    find_needed(&r);
    st = laci_remat_plan(&r, &gains, err);
  }
  if (!st && gains) st = rewrite(&r, n_again, err);
  laci_free(r.live);
  laci_free(r.soft);
  laci_free(r.again);
  laci_free(r.bytes);
  laci_free(r.n_uses);
  laci_free(r.last);
  laci_free(r.needed);
  laci_free(r.keep);
  return st;
}
