/* SPDX-License-Identifier: Apache-2.0
 * Computes, before a walk begins, its peak memory: a stop's engines and buffers, its sums, its
 * fits, and the values between stops. These values are stored in files if memory is short. */
#include <stdio.h>

#include "base/budget.h"
#include "base/log.h"
#include "calibrate/fit.h"
#include "calibrate/residual_in.h"
#include "calibrate/walk_in.h"
#include "cpu/pool.h"

enum { MOST_WORKERS = 32 };
/* Limit of the bytes of values between layers that are kept in memory. Others go to files, which
 * the system caches while it has free memory. */
static const uint64_t MOST_VALUES = (uint64_t)3 << 29;

static uint64_t bytes_of_values(const laci_walk_state *w, const int *values, int n) {
  uint64_t bytes = 0;
  for (int i = 0; i < n; i++) bytes += laci_walk_largest_value_bytes(w, values[i]);
  return bytes;
}

/* Returns the bytes of the engines and buffers of one worker: of the part before a stop, in both
 * networks. */
static uint64_t bytes_of_worker(const laci_walk_state *w, const laci_stop *stop) {
  uint64_t bytes = 0;
  for (int stream = 0; stream < LACI_STREAMS; stream++) {
    const laci_part *part = &stop->part[stream];
    uint64_t most = 0;
    for (int shape_set = 0; shape_set < w->n_shape_sets; shape_set++) {
      const uint64_t memory = laci_part_memory_bytes(w->networks[shape_set], part);
      if (memory > most) most = memory;
    }
    bytes += most + bytes_of_values(w, part->inputs, part->n_inputs) +
             bytes_of_values(w, part->outputs, part->n_outputs);
  }
  return bytes;
}

static bool has_asymmetric_sums(const laci_walk_state *w, const laci_stop *stop) {
  return !w->options->symmetric && w->plan.differs[stop->value];
}

static uint64_t bytes_of_sums(const laci_walk_state *w, const laci_stop *stop) {
  uint64_t bytes = 0;
  for (int l = 0; l < stop->n_layers; l++) {
    const laci_matrix_layer *layer = &w->plan.layers[stop->first_layer + l];
    bool shared = false;
    for (int other = 0; other < l && !shared; other++)
      shared = laci_unfold_equal(&layer->unfold, &layer[other - l].unfold);
    bytes += laci_residual_memory_bytes(w, layer);
    if (!shared) bytes += laci_grams_memory_bytes(&layer->unfold, has_asymmetric_sums(w, stop));
  }
  return bytes;
}

/* Returns the bytes of a layer's outputs in a batch, for the shape set in which they are most. */
static uint64_t largest_output_bytes(const laci_walk_state *w, const laci_matrix_layer *l) {
  if (l->is_recurrent) return laci_matrix_layer_output_bytes(l, w->network, &l->unfold);
  return laci_walk_largest_value_bytes(w, w->network->graph.nodes[l->node].outputs[0]);
}

/* Returns the peak bytes of a layer's fit: the larger of its matrices during the fit and its
 * outputs while its error is measured. */
static uint64_t bytes_of_layer_fit(const laci_walk_state *w, const laci_matrix_layer *l) {
  const laci_stored *stored = &w->network->graph.stored[l->stored];
  const double some = 0;
  laci_fit fit = {.rows = (int)l->rows,
                  .columns = (int)l->columns,
                  .channels = (int)l->channels,
                  .pattern = w->options->pattern,
                  .h = &some,
                  .k = &some};
  int threads = laci_pool_threads(w->options->pool);
  uint64_t matrices = laci_count_bytes_saturated(l->rows * l->columns, 2 * sizeof(double) + 1);
  uint64_t fits = matrices +
                  laci_count_bytes_saturated(laci_shape_count(&stored->shape), sizeof(double)) +
                  laci_fit_memory_bytes(&fit, w->options->score, threads);
  uint64_t judges = 3 * (largest_output_bytes(w, l) + stored->size_bytes) +
                    2 * laci_walk_largest_value_bytes(w, l->value);
  judges *= (uint64_t)w->n_workers;
  return (fits > judges ? fits : judges) + 2 * stored->size_bytes;
}

/* Adds to the budget the memory for one stop (a value that layers read): its layers' sums, and the
 * larger of its engines and its fits. Stored values are not counted. */
static void add_stop_to_budget(const laci_walk_state *w, const laci_stop *stop,
                               laci_budget *budget) {
  uint64_t workers = bytes_of_worker(w, stop) * (uint64_t)w->n_workers,
           sums = bytes_of_sums(w, stop), most = 0;
  const char *name = w->network->graph.values[stop->value].name;
  const laci_matrix_layer *largest = &w->plan.layers[stop->first_layer];
  for (int l = 0; l < stop->n_layers; l++) {
    const laci_matrix_layer *layer = &w->plan.layers[stop->first_layer + l];
    uint64_t bytes = bytes_of_layer_fit(w, layer);
    if (bytes <= most) continue;
    most = bytes;
    largest = layer;
  }
  laci_budget_add(budget, sums, "sums over what layers read of %s", name);
  /* Engines are freed before layers are fitted, so only the larger of the two counts. */
  if (workers > most) laci_budget_add(budget, workers, "running the network up to %s", name);
  else laci_budget_add(budget, most, "the fit of %s", w->network->graph.nodes[largest->node].name);
}

/* Returns the options' budget with the masks and new weights of all layers added. */
static laci_budget budget_before_first_stop(const laci_walk_state *w) {
  laci_budget start = w->options->budget ? *w->options->budget : laci_budget_with_limit(UINT64_MAX);
  for (int l = 0; l < w->plan.n_layers; l++) {
    const laci_stored *stored = &w->network->graph.stored[w->plan.layers[l].stored];
    laci_budget_add(
        &start,
        stored->size_bytes + laci_count_bytes_saturated(laci_shape_count(&stored->shape), 1),
        "mask and weights of %s", stored->name);
  }
  return start;
}

const char *laci_walk_explain_too_large_fit(laci_walk_state *w, const laci_matrix_layer *layer) {
  const laci_budget start = budget_before_first_stop(w);
  const bool asymmetric = !w->options->symmetric && w->plan.differs[layer->value];
  char needs[32], left[32], text[128];
  w->n_workers = 1;
  const uint64_t bytes =
      laci_grams_memory_bytes(&layer->unfold, asymmetric) + bytes_of_layer_fit(w, layer);
  if (laci_budget_allows(&start, bytes)) return NULL;
  const uint64_t free_bytes = start.limit > start.needed ? start.limit - start.needed : 0;
  (void)snprintf(text, sizeof text, "its fit takes %s of memory, and %s are left",
                 laci_size_text(bytes, needs, sizeof needs),
                 laci_size_text(free_bytes, left, sizeof left));
  const char *reason = laci_arena_text(&w->out->arena, text);
  return reason ? reason : "its fit takes more memory than is left";
}

static laci_budget budget_of_largest_stop(const laci_walk_state *w) {
  const laci_budget start = budget_before_first_stop(w);
  laci_budget most = start;
  for (int s = 0; s < w->plan.n_stops; s++) {
    laci_budget phase = start;
    add_stop_to_budget(w, &w->plan.stops[s], &phase);
    laci_budget_keep_larger(&most, &phase);
  }
  return most;
}

lac_status laci_walk_plan_memory(laci_walk_state *w, lac_error *err) {
  int64_t threads = laci_pool_threads(w->options->pool);
  if (threads > MOST_WORKERS) threads = MOST_WORKERS;
  if (threads > w->cut.n_batches) threads = w->cut.n_batches;
  w->n_workers = (int)threads;
  laci_budget most = budget_of_largest_stop(w);
  while (w->n_workers > 1 && most.needed > most.limit) {
    w->n_workers /= 2;
    most = budget_of_largest_stop(w);
  }
  lac_status st = laci_budget_check(&most, "the calibration", err);
  if (st) return st;
  uint64_t left = most.limit == UINT64_MAX ? UINT64_MAX : most.limit - most.needed;
  uint64_t quarter = (most.limit == UINT64_MAX ? laci_memory_default_limit("") : most.limit) / 4;
  if (quarter > MOST_VALUES) quarter = MOST_VALUES;
  if (w->options->memory_for_values > 0) quarter = w->options->memory_for_values;
  w->allocator.folder = w->options->folder;
  w->memory = most.needed;
  w->allocator.memory_limit = left < quarter ? left : quarter;
  char needed[32], in_memory[32];
  laci_log(LAC_LOG_DEBUG,
           "calibration: %d batch%s at a time, %s besides the values between layers, of which at "
           "most %s are in memory",
           w->n_workers, w->n_workers == 1 ? "" : "es",
           laci_size_text(most.needed, needed, sizeof needed),
           laci_size_text(w->allocator.memory_limit, in_memory, sizeof in_memory));
  return LAC_OK;
}
