/* SPDX-License-Identifier: Apache-2.0
 * Finds blocks by the structure of the graph alone. A block ends at a sum of two computed values;
 * if there are no such sums, after every few layers. */
#include "distill/blocks.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/training_graph.h"

enum { MOST_LAYERS_APART = 4, FEWEST_BLOCKS = 3 };

typedef struct finder {
  const laci_graph *graph;
  bool *computed; /* [n_values] the value depends on the network's inputs, and the logits depend on
                     the value */
  int logits;
} finder;

static void mark_computed_values(const finder *f) {
  const laci_graph *g = f->graph;
  for (int i = 0; i < g->n_inputs; i++) f->computed[g->inputs[i]] = true;
  for (int n = 0; n < g->n_nodes; n++) {
    const laci_node *node = &g->nodes[n];
    bool any = false;
    for (int i = 0; i < node->n_inputs; i++)
      any |= node->inputs[i] >= 0 && f->computed[node->inputs[i]];
    for (int i = 0; i < node->n_outputs; i++)
      if (node->outputs[i] >= 0) f->computed[node->outputs[i]] = any;
  }
}

/** Clears `computed` for values that the logits do not depend on. */
static lac_status unmark_unneeded_values(const finder *f, lac_error *err) {
  const laci_graph *g = f->graph;
  bool *wanted = laci_alloc((size_t)g->n_values, sizeof *wanted);
  if (!wanted) return laci_fail_memory(err, "blocks of layers");
  wanted[f->logits] = true;
  for (int n = g->n_nodes - 1; n >= 0; n--) {
    const laci_node *node = &g->nodes[n];
    bool any = false;
    for (int i = 0; i < node->n_outputs; i++)
      any |= node->outputs[i] >= 0 && wanted[node->outputs[i]];
    for (int i = 0; i < node->n_inputs && any; i++)
      if (node->inputs[i] >= 0) wanted[node->inputs[i]] = true;
  }
  for (int v = 0; v < g->n_values; v++) f->computed[v] &= wanted[v];
  laci_free(wanted);
  return LAC_OK;
}

static bool is_residual(const finder *f, const laci_node *node) {
  const laci_graph *g = f->graph;
  bool is_add = node->op && !node->op->domain && strcmp(node->type, "Add") == 0;
  if (!is_add || node->n_inputs != 2 || node->inputs[0] == node->inputs[1]) return false;
  for (int i = 0; i < 2; i++) {
    if (node->inputs[i] < 0 || !f->computed[node->inputs[i]]) return false;
  }
  const laci_shape *a = &g->values[node->inputs[0]].type.shape;
  const laci_shape *b = &g->values[node->inputs[1]].type.shape;
  return a->rank >= 2 && laci_shape_equal(a, b) && f->computed[node->outputs[0]];
}

static bool is_activation(const laci_node *node) {
  static const char *const names[] = {"Relu",  "Clip", "LeakyRelu", "Sigmoid", "HardSwish", "Gelu",
                                      "Swish", "Elu",  "PRelu",     "Tanh",    "Mish"};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++)
    if (strcmp(node->type, names[k]) == 0) return true;
  return false;
}

static bool is_norm(const laci_node *node) { return strcmp(node->type, "BatchNormalization") == 0; }

/** Follows `value` through batch normalizations (only if `norms`) and one activation. Each of these
 * nodes must be the only reader of its input. Returns the value after them. */
static int find_value_after_norms(const finder *f, int value, bool norms) {
  const laci_graph *g = f->graph;
  for (bool active = false; !active;) {
    const laci_value *v = &g->values[value];
    if (v->n_readers != 1) break;
    const laci_node *reader = &g->nodes[v->readers[0]];
    bool passes = is_activation(reader) || (norms && is_norm(reader));
    if (!passes || reader->inputs[0] != value || !f->computed[reader->outputs[0]]) break;
    active = is_activation(reader);
    value = reader->outputs[0];
  }
  return value;
}

static bool is_computed_layer(const finder *f, const laci_node *node) {
  laci_weight_axes axes[2];
  return node->op && node->op->weights && node->op->weights(f->graph, node, axes) > 0 &&
         node->outputs[0] >= 0 && f->computed[node->outputs[0]];
}

static void add_block_output(const finder *f, int value, int *blocks, int *n) {
  bool known = value == f->logits;
  for (int at = 0; at < *n; at++) known |= blocks[at] == value;
  if (!known) blocks[(*n)++] = value;
}

static void choose_spaced_layers(const finder *f, int *blocks, int *n) {
  const laci_graph *g = f->graph;
  int n_layers = 0, at = 0;
  for (int k = 0; k < g->n_nodes; k++) n_layers += is_computed_layer(f, &g->nodes[k]);
  int apart = n_layers / (FEWEST_BLOCKS + 1);
  if (apart > MOST_LAYERS_APART) apart = MOST_LAYERS_APART;
  if (apart < 1) apart = 1;
  for (int k = 0; k < g->n_nodes; k++) {
    if (!is_computed_layer(f, &g->nodes[k])) continue;
    if (++at % apart == 0 && at < n_layers)
      add_block_output(f, find_value_after_norms(f, g->nodes[k].outputs[0], true), blocks, n);
  }
}

lac_status laci_block_outputs_find(const laci_graph *graph, int **blocks, int *n, lac_error *err) {
  finder f = {.graph = graph, .logits = laci_training_find_logits(graph)};
  int *found = laci_alloc((size_t)graph->n_nodes + 1, sizeof *found);
  *blocks = NULL;
  *n = 0;
  f.computed = laci_alloc((size_t)graph->n_values, sizeof *f.computed);
  lac_status st = f.computed && found ? LAC_OK : laci_fail_memory(err, "blocks of layers");
  if (!st) mark_computed_values(&f);
  if (!st) st = unmark_unneeded_values(&f, err);
  for (int k = 0; k < graph->n_nodes && !st; k++) {
    const laci_node *node = &graph->nodes[k];
    if (is_residual(&f, node))
      add_block_output(&f, find_value_after_norms(&f, node->outputs[0], false), found, n);
  }
  if (!st && *n == 0) choose_spaced_layers(&f, found, n);
  laci_free(f.computed);
  if (st) laci_free(found);
  else *blocks = found;
  return st;
}
