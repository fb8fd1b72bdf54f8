/* SPDX-License-Identifier: Apache-2.0 */
#include "calibrate/norms_in.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "tensor/buf.h"

/* Returns the stored floats that are an input of the node, if they are in memory; else NULL. */
static const laci_stored *find_loaded_floats(const laci_graph *graph, const laci_node *node,
                                             int port) {
  const laci_stored *stored = laci_node_find_stored_floats(graph, node, port);
  return stored && stored->bytes ? stored : NULL;
}

static bool is_norm_with_statistics(const laci_graph *graph, const laci_node *node) {
  if (node->domain[0] || strcmp(node->type, "BatchNormalization") != 0 || node->body) return false;
  const laci_stored *mean = find_loaded_floats(graph, node, 3),
                    *variance = find_loaded_floats(graph, node, 4);
  return mean && variance && mean->shape.rank == 1 && variance->shape.rank == 1 &&
         mean->shape.dims[0] > 0 && mean->shape.dims[0] == variance->shape.dims[0] &&
         node->inputs[0] >= 0 && graph->values[node->inputs[0]].producer >= 0;
}

/* Raises the variance of channels that hardly vary, since these channels alone would otherwise
 * determine the distance. */
static void raise_small_variances(laci_norm *n) {
  double sum = 0;
  for (int64_t k = 0; k < n->channels; k++) sum += fmax(n->variance[k], 0);
  const double least = fmax(1e-3 * sum / (double)n->channels, 1e-30);
  for (int64_t k = 0; k < n->channels; k++) n->variance[k] = fmax(n->variance[k], least);
}

static lac_status add_norm(laci_norms *c, const laci_graph *graph, const laci_node *node,
                           lac_error *err) {
  const laci_stored *mean = find_loaded_floats(graph, node, 3),
                    *variance = find_loaded_floats(graph, node, 4);
  laci_norm *n = &c->list[c->n];
  for (int k = 0; k < c->n; k++)
    if (c->list[k].value == node->inputs[0])
      return LAC_OK; /* another normalization reads the same value: one is enough */
  *n = (laci_norm){
      .value = node->inputs[0], .channels = mean->shape.dims[0], .first = c->n_channels};
  n->mean = laci_arena_alloc(&c->arena, (size_t)n->channels, sizeof *n->mean);
  n->variance = laci_arena_alloc(&c->arena, (size_t)n->channels, sizeof *n->variance);
  if (!n->mean || !n->variance) return laci_fail_memory(err, "statistics of samples");
  laci_read_f64(mean->dtype, mean->bytes, 0, n->channels, n->mean);
  laci_read_f64(variance->dtype, variance->bytes, 0, n->channels, n->variance);
  raise_small_variances(n);
  c->values[c->n++] = n->value;
  c->n_channels += (size_t)n->channels;
  return LAC_OK;
}

lac_status laci_norms_find(const laci_graph *graph, laci_norms *norms, lac_error *err) {
  *norms = (laci_norms){.n = 0};
  norms->list = laci_arena_alloc(&norms->arena, (size_t)graph->n_nodes + 1, sizeof *norms->list);
  norms->values =
      laci_arena_alloc(&norms->arena, (size_t)graph->n_nodes + 1, sizeof *norms->values);
  if (!norms->list || !norms->values) return laci_fail_memory(err, "statistics of samples");
  for (int id = 0; id < graph->n_nodes; id++) {
    if (!is_norm_with_statistics(graph, &graph->nodes[id])) continue;
    lac_status st = add_norm(norms, graph, &graph->nodes[id], err);
    if (st) return st;
  }
  return LAC_OK;
}

void laci_norms_clear(laci_norms *norms) {
  laci_arena_clear(&norms->arena);
  *norms = (laci_norms){.n = 0};
}
