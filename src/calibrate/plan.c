/* SPDX-License-Identifier: Apache-2.0
 * The cut of the network into parts. */
#include "calibrate/plan_in.h"

#include <stdlib.h>

#include "base/error.h"

typedef struct planning {
  laci_network *network;
  laci_walk_plan *plan;
  bool *there;  /* [n_values] the value is available: computed by an earlier part, or an input of
                   the network */
  int *stop_of; /* [n_nodes] index of the stop whose part contains the node; -1: none */
  int *wanted;  /* [n_values] outputs of the part that is being planned */
  lac_error *err;
} planning;

/* ---- Stops ---- */

static int find_stop_of_value(const laci_walk_plan *plan, int value) {
  for (int s = 0; s < plan->n_stops; s++)
    if (plan->stops[s].value == value) return s;
  return -1;
}

static int compare_by_node(const void *a, const void *b) {
  const laci_matrix_layer *p = a, *q = b;
  if (p->node == q->node) return (p->port > q->port) - (p->port < q->port);
  return p->node > q->node ? 1 : -1;
}

/* Lists the stops (values that layers read) in the order of their first layers, so that a value
 * comes after all values that it depends on. */
static lac_status list_stops(planning *p) {
  laci_walk_plan *plan = p->plan;
  size_t n = (size_t)plan->n_layers;
  plan->stops = laci_arena_alloc(&p->network->arena, n + 1, sizeof *plan->stops);
  laci_matrix_layer *sorted = laci_alloc(n + 1, sizeof *sorted);
  if (!plan->stops || !sorted) {
    laci_free(sorted);
    return laci_fail_memory(p->err, "the parts of the network");
  }
  qsort(plan->layers, n, sizeof *plan->layers, compare_by_node);
  for (size_t l = 0; l < n; l++) {
    int s = find_stop_of_value(plan, plan->layers[l].value);
    if (s < 0) plan->stops[s = plan->n_stops++].value = plan->layers[l].value;
    plan->stops[s].n_layers++;
  }
  int at = 0;
  for (int s = 0; s < plan->n_stops; s++) {
    plan->stops[s].first_layer = at;
    for (size_t l = 0; l < n; l++)
      if (plan->layers[l].value == plan->stops[s].value) sorted[at++] = plan->layers[l];
  }
  laci_free(plan->layers);
  plan->layers = sorted;
  return LAC_OK;
}

/* ---- Finding which values differ in the pruned network, and how long each is needed ---- */

static void mark_differing_values(planning *p, const bool *is_pruned) {
  const laci_graph *graph = &p->network->graph;
  bool *differs = p->plan->differs;
  for (int v = 0; v < graph->n_values; v++)
    differs[v] = graph->values[v].stored >= 0 && is_pruned[graph->values[v].stored];
  for (int at = 0; at < graph->n_nodes; at++) {
    const laci_node *node = &graph->nodes[at];
    bool any = false;
    for (int i = 0; i < node->n_inputs; i++)
      any = any || (node->inputs[i] >= 0 && differs[node->inputs[i]]);
    for (int i = 0; i < node->n_outputs; i++)
      if (node->outputs[i] >= 0) differs[node->outputs[i]] = any;
  }
}

static void mark_inputs_available(planning *p) {
  const laci_graph *graph = &p->network->graph;
  for (int v = 0; v < graph->n_values; v++) p->there[v] = graph->values[v].is_input;
}

/* Marks the values that the part computes as available for later parts. */
static void mark_computed_values(planning *p, const laci_part *part) {
  const laci_graph *graph = &p->network->graph;
  for (int i = 0; i < part->n_nodes; i++) {
    const laci_node *node = &graph->nodes[part->nodes[i]];
    for (int o = 0; o < node->n_outputs; o++) {
      int v = node->outputs[o];
      if (v >= 0 && !p->network->constant[v]) p->there[v] = true;
    }
  }
}

static lac_status find_last_stop_of_values(planning *p) {
  const laci_graph *graph = &p->network->graph;
  laci_walk_plan *plan = p->plan;
  for (int n = 0; n < graph->n_nodes; n++) p->stop_of[n] = -1;
  mark_inputs_available(p);
  for (int s = 0; s < plan->n_stops; s++) {
    laci_part part = {0};
    int value = plan->stops[s].value;
    if (p->there[value]) continue;
    lac_status st = laci_part_find_nodes(p->network, p->there, 1, &value, &part, p->err);
    if (st) return st;
    for (int i = 0; i < part.n_nodes; i++)
      if (p->stop_of[part.nodes[i]] < 0) p->stop_of[part.nodes[i]] = s;
    mark_computed_values(p, &part);
  }
  for (int v = 0; v < graph->n_values; v++) {
    const laci_value *value = &graph->values[v];
    plan->last_stop[v] = find_stop_of_value(plan, v);
    for (int r = 0; r < value->n_readers; r++) {
      int s = p->stop_of[value->readers[r]];
      if (s > plan->last_stop[v]) plan->last_stop[v] = s;
    }
  }
  return LAC_OK;
}

/* ---- Parts ---- */

/* Lists the outputs of the part of the network that runs before stop s: the input of the stop's
 * layers, and values that later parts read. */
static int list_part_outputs(planning *p, int s, int stream) {
  const laci_graph *graph = &p->network->graph;
  const laci_walk_plan *plan = p->plan;
  int n = 0;
  for (int v = 0; v < graph->n_values; v++) {
    int producer = graph->values[v].producer;
    if (producer < 0 || p->stop_of[producer] != s || p->network->constant[v]) continue;
    if (v != plan->stops[s].value && plan->last_stop[v] <= s) continue;
    if (stream == LACI_STREAM_PRUNED && !plan->differs[v]) continue;
    p->wanted[n++] = v;
  }
  return n;
}

/* Makes the parts of a stop whose value was computed by an earlier part: they have an input and no
 * nodes. */
static lac_status make_empty_parts(planning *p, laci_stop *stop) {
  int *input = laci_arena_alloc(&p->network->arena, 1, sizeof *input);
  if (!input) return laci_fail_memory(p->err, "the parts of the network");
  *input = stop->value;
  stop->part[LACI_STREAM_DENSE] = (laci_part){.n_inputs = 1, .inputs = input};
  if (p->plan->differs[stop->value]) stop->part[LACI_STREAM_PRUNED] = stop->part[LACI_STREAM_DENSE];
  return LAC_OK;
}

static lac_status make_parts_of_stops(planning *p) {
  laci_walk_plan *plan = p->plan;
  mark_inputs_available(p);
  for (int s = 0; s < plan->n_stops; s++) {
    laci_stop *stop = &plan->stops[s];
    lac_status st = LAC_OK;
    if (p->there[stop->value]) {
      st = make_empty_parts(p, stop);
      if (st) return st;
      continue;
    }
    for (int stream = 0; stream < LACI_STREAMS && !st; stream++) {
      int n = list_part_outputs(p, s, stream);
      if (n == 0) continue;
      st = laci_part_find_nodes(p->network, p->there, n, p->wanted, &stop->part[stream], p->err);
    }
    if (st) return st;
    mark_computed_values(p, &stop->part[LACI_STREAM_DENSE]);
  }
  return LAC_OK;
}

lac_status laci_walk_plan_make(laci_network *network, const bool *is_pruned, laci_walk_plan *plan,
                               lac_error *err) {
  size_t n_values = (size_t)network->graph.n_values, n_nodes = (size_t)network->graph.n_nodes;
  planning p = {.network = network, .plan = plan, .err = err};
  plan->differs = laci_arena_alloc(&network->arena, n_values + 1, sizeof *plan->differs);
  plan->last_stop = laci_arena_alloc(&network->arena, n_values + 1, sizeof *plan->last_stop);
  p.there = laci_alloc(n_values + 1, sizeof *p.there);
  p.stop_of = laci_alloc(n_nodes + 1, sizeof *p.stop_of);
  p.wanted = laci_alloc(n_values + 1, sizeof *p.wanted);
  bool ok = plan->differs && plan->last_stop && p.there && p.stop_of && p.wanted;
  lac_status st = ok ? LAC_OK : laci_fail_memory(err, "the parts of the network");
  if (!st) st = list_stops(&p);
  if (!st) mark_differing_values(&p, is_pruned);
  if (!st) st = find_last_stop_of_values(&p);
  if (!st) st = make_parts_of_stops(&p);
  laci_free(p.there);
  laci_free(p.stop_of);
  laci_free(p.wanted);
  return st;
}
