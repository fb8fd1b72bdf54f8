/* SPDX-License-Identifier: Apache-2.0
 * Times plans, layer by layer; in each plan, one algorithm computes every layer that it can. */
#include "engine/cpu/native/tune.h"

#include <string.h>

#include "base/timings.h"
#include "engine/cpu/native/layout/tensors.h"
#include "engine/cpu/trial.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/choose/choose.h"
#include "engine/cpu/native/algorithms/algorithm.h"

static double sum_node_seconds(const laci_trial *t, const laci_node *node) {
  double sum = 0;
  for (size_t at = 0; at < t->net->n_steps; at++) {
    if (t->net->steps[at].node == node) sum += t->least[at];
  }
  return sum;
}

/** Stores the mean time of all layers with this name, computed by algorithm `id`. */
static lac_status store_layer_time(const laci_trial *t, const char *name, laci_algorithm_id id,
                                   laci_timings *timings, lac_error *err) {
  const laci_native_net *native = t->net->native;
  double seconds = 0;
  int n = 0;
  for (int at = 0; at < native->n_layers; at++) {
    char other[LACI_NATIVE_NAME];
    laci_native_layer_name(t->net, &native->layers[at], id, other);
    if (strcmp(name, other) != 0) continue;
    seconds += sum_node_seconds(t, &t->net->plan.graph->nodes[native->layers[at].fused->node]);
    n++;
  }
  return seconds > 0 ? laci_timings_set(timings, name, seconds / n, err) : LAC_OK;
}

static lac_status store_layer_times(const laci_trial *t, laci_algorithm_id id,
                                    laci_timings *timings, lac_error *err) {
  const laci_native_net *native = t->net->native;
  lac_status st = LAC_OK;
  for (int at = 0; at < native->n_layers && !st; at++) {
    char name[LACI_NATIVE_NAME];
    if (!laci_native_algorithm_can_compute(t->net, &native->layers[at], id)) continue;
    laci_native_layer_name(t->net, &native->layers[at], id, name);
    st = store_layer_time(t, name, id, timings, err);
  }
  return st;
}

/** Does the step belong to a reorder between native and dense layers? Such a reorder goes through a
 * row-major tensor, so a step of oneDNN's comes before or after the native reorder. */
static bool is_part_of_reorder(const laci_trial *t, size_t at) {
  const laci_net_step *steps = t->net->steps;
  if (steps[at].node) return false;
  if (at > 0 && laci_native_is_reorder(&steps[at - 1])) return true;
  return at + 1 < t->net->n_steps && laci_native_is_reorder(&steps[at + 1]);
}

/** Stores the mean time of all reorders between dense and native layers, per float. */
static lac_status store_reorder_time(const laci_trial *t, laci_timings *timings, lac_error *err) {
  char name[LACI_NATIVE_NAME];
  double seconds = 0, floats = 0;
  for (size_t at = 0; at < t->net->n_steps; at++) {
    const laci_net_step *step = &t->net->steps[at];
    const bool is_one = laci_native_is_reorder(step);
    if (is_one || is_part_of_reorder(t, at)) seconds += t->least[at];
    if (is_one) floats += (double)laci_shape_count(&t->net->tensors[step->shown].shape);
  }
  if (floats == 0) return LAC_OK;
  laci_native_layer_name(t->net, NULL, LACI_ALGORITHM_dense, name);
  return laci_timings_set(timings, name, seconds / floats, err);
}

/** Is it the default algorithm of a kind of layers? All default algorithms are timed by one
 * plan. */
static bool is_default_algorithm(laci_algorithm_id id) {
  for (int kind = 0; kind < LACI_NATIVE_N_KINDS; kind++) {
    if (laci_algorithm_default_of_kind(kind) == id) return true;
  }
  return false;
}

/** Times a plan with the algorithm `wanted`, or with the default algorithms of all kinds
 * (LACI_N_ALGORITHMS). */
static lac_status time_algorithm(const laci_graph *graph, const laci_engine_options *options,
                                 int wanted, lac_error *err) {
  const bool dense = wanted == LACI_ALGORITHM_dense, of_kinds = wanted == LACI_N_ALGORITHMS;
  const laci_native_use use = {dense ? LACI_NATIVE_USE_NONE : LACI_NATIVE_USE_ZEROS,
                               of_kinds ? LACI_ALGORITHM_dense : wanted};
  laci_trial t;
  lac_status st = laci_trial_begin(graph, options, use, &t, err);
  if (!st) st = laci_trial_run(&t, options->tuning, err);
  for (int id = 0; id < LACI_N_ALGORITHMS && !st; id++) {
    if (of_kinds ? is_default_algorithm(id) : id == wanted)
      st = store_layer_times(&t, id, options->timings, err);
  }
  if (!st && !dense) st = store_reorder_time(&t, options->timings, err);
  laci_trial_end(&t);
  return st;
}

/** Finds which algorithms have to be timed: none if there is no choice, or if all times are known.
 * wanted[LACI_N_ALGORITHMS] stands for the default algorithms of all kinds. */
static lac_status find_algorithms_to_time(const laci_graph *graph,
                                          const laci_engine_options *options,
                                          bool wanted[LACI_N_ALGORITHMS + 1], lac_error *err) {
  laci_trial t;
  laci_native_costs costs;
  const laci_native_use listed = {LACI_NATIVE_USE_LISTED, 0};
  lac_status st = laci_trial_begin(graph, options, listed, &t, err);
  memset(wanted, 0, (LACI_N_ALGORITHMS + 1) * sizeof *wanted);
  if (st) return st;
  const laci_native_net *native = t.net->native;
  const bool known = !native || (laci_native_alloc_costs(t.net, &costs) &&
                                 laci_native_find_timings(t.net, options->timings, &costs));
  for (int id = 0; id < LACI_N_ALGORITHMS; id++) {
    bool *of = &wanted[is_default_algorithm(id) ? LACI_N_ALGORITHMS : id];
    for (int at = 0; !known && at < native->n_layers; at++) {
      *of = *of || laci_native_algorithm_can_compute(t.net, &native->layers[at], id);
    }
  }
  laci_trial_end(&t);
  return LAC_OK;
}

lac_status laci_cpu_tune(const laci_graph *graph, const laci_engine_options *options,
                         lac_error *err) {
  bool wanted[LACI_N_ALGORITHMS + 1];
  lac_status st = find_algorithms_to_time(graph, options, wanted, err);
  if (!st && wanted[LACI_ALGORITHM_dense]) {
    st = time_algorithm(graph, options, LACI_ALGORITHM_dense, err);
  }
  if (!st && wanted[LACI_N_ALGORITHMS]) {
    st = time_algorithm(graph, options, LACI_N_ALGORITHMS, err);
  }
  for (int id = LACI_ALGORITHM_dense + 1; id < LACI_N_ALGORITHMS && !st; id++) {
    if (wanted[id]) st = time_algorithm(graph, options, id, err);
  }
  return st;
}
