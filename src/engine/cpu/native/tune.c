/* SPDX-License-Identifier: Apache-2.0
 * Plans in which all layers are done the same way, timed layer by layer. */
#include "engine/cpu/native/tune.h"

#include <string.h>

#include "base/timings.h"
#include "engine/cpu/native/layout/tensors.h"
#include "engine/cpu/trial.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/choose/choose.h"
#include "engine/cpu/native/algorithms/algorithms.h"

static double node_seconds(const laci_trial *t, const laci_node *node) {
  double sum = 0;
  for (size_t at = 0; at < t->net->n_steps; at++) {
    if (t->net->steps[at].node == node) sum += t->least[at];
  }
  return sum;
}

/** The mean of all layers of that name. */
static lac_status note_layer(const laci_trial *t, const char *name, laci_sparse_way way,
                             laci_timings *timings, lac_error *err) {
  const laci_sparse_net *sparse = t->net->sparse;
  double seconds = 0;
  int n = 0;
  for (int at = 0; at < sparse->n_layers; at++) {
    char other[LACI_SPARSE_NAME];
    laci_sparse_name(t->net, &sparse->layers[at], way, other);
    if (strcmp(name, other) != 0) continue;
    seconds += node_seconds(t, &t->net->plan.graph->nodes[sparse->layers[at].fused->node]);
    n++;
  }
  return seconds > 0 ? laci_timings_set(timings, name, seconds / n, err) : LAC_OK;
}

static lac_status note_layers(const laci_trial *t, laci_sparse_way way, laci_timings *timings,
                              lac_error *err) {
  const laci_sparse_net *sparse = t->net->sparse;
  lac_status st = LAC_OK;
  for (int at = 0; at < sparse->n_layers && !st; at++) {
    char name[LACI_SPARSE_NAME];
    if (!laci_sparse_can(t->net, &sparse->layers[at], way)) continue;
    laci_sparse_name(t->net, &sparse->layers[at], way, name);
    st = note_layer(t, name, way, timings, err);
  }
  return st;
}

/** A float's share of all reorders between dense and sparse layers. */
static lac_status note_reorders(const laci_trial *t, laci_timings *timings, lac_error *err) {
  char name[LACI_SPARSE_NAME];
  double seconds = 0, floats = 0;
  for (size_t at = 0; at < t->net->n_steps; at++) {
    const laci_net_step *step = &t->net->steps[at];
    if (!laci_pictures_is_reorder(step)) continue;
    seconds += t->least[at];
    floats += (double)laci_shape_count(&t->net->tensors[step->shown].shape);
  }
  if (floats == 0) return LAC_OK;
  laci_sparse_name(t->net, NULL, LACI_SPARSE_WAY_REORDER, name);
  return laci_timings_set(timings, name, seconds / floats, err);
}

enum { N_WAYS = LACI_SPARSE_WAY_REORDER };
static const laci_sparse_use uses[N_WAYS] = {[LACI_SPARSE_WAY_DENSE] = LACI_SPARSE_USE_NONE,
                                             [LACI_SPARSE_WAY_SPARSE] = LACI_SPARSE_USE_ZEROS,
                                             [LACI_SPARSE_WAY_LISTS] = LACI_SPARSE_USE_LISTS,
                                             [LACI_SPARSE_WAY_WINOGRAD] = LACI_SPARSE_USE_WINOGRAD};

static lac_status try_way(const laci_graph *graph, const laci_engine_options *options,
                          laci_sparse_way way, lac_error *err) {
  laci_trial t;
  lac_status st = laci_trial_begin(graph, options, uses[way], &t, err);
  if (!st) st = laci_trial_run(&t, options->tuning, err);
  if (!st) st = note_layers(&t, way, options->timings, err);
  if (!st && way != LACI_SPARSE_WAY_DENSE) st = note_reorders(&t, options->timings, err);
  laci_trial_end(&t);
  return st;
}

/** Which ways are to be timed: none where there is nothing to be chosen, or all of it known. */
static lac_status find_ways(const laci_graph *graph, const laci_engine_options *options,
                            bool wanted[N_WAYS], lac_error *err) {
  laci_trial t;
  laci_sparse_costs costs;
  lac_status st = laci_trial_begin(graph, options, LACI_SPARSE_USE_LISTED, &t, err);
  if (st) return st;
  const laci_sparse_net *sparse = t.net->sparse;
  const bool known = !sparse || (laci_sparse_new_costs(t.net, &costs) &&
                                 laci_sparse_find_timings(t.net, options->timings, &costs));
  for (int way = 0; way < N_WAYS; way++) {
    wanted[way] = false;
    for (int at = 0; !known && at < sparse->n_layers; at++) {
      wanted[way] = wanted[way] || laci_sparse_can(t.net, &sparse->layers[at], way);
    }
  }
  laci_trial_end(&t);
  return LAC_OK;
}

lac_status laci_cpu_tune(const laci_graph *graph, const laci_engine_options *options,
                         lac_error *err) {
  bool wanted[N_WAYS];
  lac_status st = find_ways(graph, options, wanted, err);
  for (int way = 0; way < N_WAYS && !st; way++) {
    if (wanted[way]) st = try_way(graph, options, way, err);
  }
  return st;
}
