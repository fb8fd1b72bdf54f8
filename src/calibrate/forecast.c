/* SPDX-License-Identifier: Apache-2.0
 * How long calibrations (walks through the network) will take, and how much memory, before the
 * first begins. What costs time is done once, on this machine as loaded as it is, and multiplied:
 *
 *     a batch in every worker through the dense network    times batches, of both networks
 *     a batch added to the sums of each layer            times batches
 *     fits of some widths (forecast_fit.c)               times the rows of each layer
 *
 * There is no forecast if something cannot be tried (a network that does not run as a whole), and
 * for calibrations so short that the trials would take a noticeable part of their time. */
#include "calibrate/forecast_in.h"

#include <stdatomic.h>
#include <stdio.h>

#include "base/budget.h"
#include "base/clock.h"
#include "base/divide.h"
#include "base/log.h"
#include "calibrate/fit.h"
#include "calibrate/workers_in.h"
#include "cpu/pool.h"
#include "kernel/gram/unfold.h"

enum {
  FACTORS = 13, /* number of Cholesky factorizations in a typical fit by ALPS (alps.c), each with
                   SUBSTITUTIONS triangular solves */
  SUBSTITUTIONS = 3,
  JUDGED = 3,          /* number of weights whose outputs are compared to judge a layer's fit
                          (layer_error.c) */
  WORK_OF_ELEMENT = 64 /* number of multiplications that take as long as computing one element in a
                          node that is no layer */
};
/* Memory of engines in addition to weights and values: generated code, scratch, stacks. */
static const uint64_t ENGINES_BYTES = (uint64_t)24 << 20;
static const double LEAST_SECONDS = 5; /* a shorter forecast is not logged */
static const double LEAST_WORK = 5e10; /* minimum number of multiplications of calibrations whose
                                          time is forecast: about two seconds of a processor with
                                          two cores */

/* ---- Is a forecast worth its trials? ---- */

/* Estimates the number of multiplications of a run of one batch through one network. */
static double count_work_of_run(const laci_walk_state *w) {
  const laci_graph *graph = &w->network->graph;
  double work = 0;
  for (int v = 0; v < graph->n_values; v++)
    if (!w->network->constant[v])
      work +=
          (double)laci_network_value_bytes(w->network, v) / (double)sizeof(float) * WORK_OF_ELEMENT;
  for (int l = 0; l < w->plan.n_layers; l++) {
    const laci_matrix_layer *layer = &w->plan.layers[l];
    work += (double)layer->rows * (double)layer->columns *
            (double)laci_unfold_n_positions(&layer->unfold) * (double)layer->unfold.groups;
  }
  return work;
}

/* Estimates the number of multiplications that add one batch to a layer's Gram matrices. */
static double count_work_of_sums(const laci_walk_state *w, const laci_matrix_layer *l) {
  int64_t positions = laci_unfold_n_positions(&l->unfold);
  const int64_t most = laci_walk_max_positions(w, &l->unfold);
  if (positions > most) positions = most;
  return (double)positions * (double)l->columns * (double)l->columns * (double)l->unfold.groups;
}

/* Estimates the number of multiplications of a layer's fit. */
static double count_work_of_fit(const laci_matrix_layer *l) {
  const double columns = (double)l->columns, support = columns / 2,
               rows = (double)l->rows * (double)l->unfold.groups;
  return FACTORS * columns * columns * (columns / 3 + SUBSTITUTIONS * rows) +
         rows * support * support * support / 3;
}

static bool is_forecast_worth_trials(const laci_walk_state *w, bool sums) {
  double work = count_work_of_run(w) * 2 * (double)w->cut.n_batches;
  for (int l = 0; l < w->plan.n_layers && sums; l++)
    work += count_work_of_sums(w, &w->plan.layers[l]) * (double)w->cut.n_fitted +
            count_work_of_fit(&w->plan.layers[l]);
  return work * (double)w->options->n_walks >= LEAST_WORK;
}

/* ---- The time for running the network ---- */

typedef struct trial_run {
  const laci_walk_state *w;
  laci_part part;
  laci_part_engines workers;
  void **places; /* [n_workers, n_inputs + n_outputs] addresses of the part's inputs and outputs,
                    for each worker */
  void **owned;  /* as `places`, but only the buffers that were allocated here; NULL for others */
  _Atomic bool failed;
} trial_run;

static int count_ports(const trial_run *t) { return t->part.n_inputs + t->part.n_outputs; }

/* Finds the part that computes the values wanted[n] from the network's inputs. False: there is none
 * that can be run. */
static bool find_part_of_values(laci_walk_state *w, int n, const int *wanted, laci_part *part) {
  const laci_graph *graph = &w->network->graph;
  lac_error ignored = {0};
  bool *there = laci_alloc((size_t)graph->n_values + 1, sizeof *there);
  bool ok = there && n > 0;
  for (int i = 0; ok && i < graph->n_inputs; i++) there[graph->inputs[i]] = true;
  for (int i = 0; ok && i < n; i++)
    ok = !w->network->refusal[wanted[i]] && laci_network_value_bytes(w->network, wanted[i]) > 0;
  ok = ok && !laci_part_find_nodes(w->network, there, n, wanted, part, &ignored);
  for (int i = 0; ok && i < part->n_inputs; i++)
    ok = w->kept[LACI_STREAM_DENSE][part->inputs[i]] != NULL;
  laci_free(there);
  return ok;
}

static bool find_whole_network(laci_walk_state *w, laci_part *part) {
  const laci_graph *graph = &w->network->graph;
  int *wanted = laci_alloc((size_t)graph->n_outputs + 1, sizeof *wanted), n = 0;
  for (int i = 0; wanted && i < graph->n_outputs; i++) {
    const int value = graph->outputs[i];
    if (!w->network->constant[value] && graph->values[value].producer >= 0) wanted[n++] = value;
  }
  const bool ok = wanted && find_part_of_values(w, n, wanted, part);
  laci_free(wanted);
  return ok;
}

/* Does a stop after this one depend on its value? */
static bool is_needed_by_later_stop(const laci_walk_state *w, int s) {
  const int value = w->plan.stops[s].value;
  return w->plan.last_stop[value] > s;
}

/* Finds what the walk runs: the nodes that the values of all stops depend on. */
static bool find_part_of_stops(laci_walk_state *w, laci_part *part) {
  int *wanted = laci_alloc((size_t)w->plan.n_stops + 1, sizeof *wanted), n = 0;
  for (int s = 0; wanted && s < w->plan.n_stops; s++)
    if (w->network->graph.values[w->plan.stops[s].value].producer >= 0 &&
        !is_needed_by_later_stop(w, s))
      wanted[n++] = w->plan.stops[s].value;
  const bool ok = wanted && find_part_of_values(w, n, wanted, part);
  laci_free(wanted);
  return ok;
}

/* Gives every worker (engine) the first batch as input, and memory for the outputs. False: no
 * memory, or the batch cannot be read. */
static bool set_trial_inputs_and_outputs(trial_run *t) {
  const laci_walk_state *w = t->w;
  const int n = count_ports(t);
  t->places = laci_alloc((size_t)(w->n_workers * n) + 1, sizeof *t->places);
  t->owned = laci_alloc((size_t)(w->n_workers * n) + 1, sizeof *t->owned);
  bool ok = t->places && t->owned;
  lac_error ignored = {0};
  for (int at = 0; ok && at < w->n_workers * n; at++) {
    const int port = at % n;
    const bool in = port < t->part.n_inputs;
    const int value = in ? t->part.inputs[port] : t->part.outputs[port - t->part.n_inputs];
    const laci_stored_batches *kept = in ? w->kept[LACI_STREAM_DENSE][value] : NULL;
    t->places[at] = kept ? laci_stored_batches_address(kept, 0) : NULL;
    if (t->places[at]) continue;
    t->owned[at] = laci_alloc((size_t)laci_walk_largest_value_bytes(w, value), 1);
    t->places[at] = t->owned[at];
    ok = t->owned[at] && (!kept || !laci_stored_batches_read(kept, 0, t->owned[at], &ignored));
  }
  return ok;
}

static void clear_trial_run(trial_run *t) {
  for (int at = 0; t->owned && at < t->w->n_workers * count_ports(t); at++) laci_free(t->owned[at]);
  laci_free(t->places);
  laci_free(t->owned);
  laci_part_engines_clear(&t->workers);
}

static void run_trial_batch(int64_t begin, int64_t end, void *context) {
  trial_run *t = context;
  const int n = count_ports(t);
  lac_error ignored = {0};
  for (int64_t worker = begin; worker < end; worker++) {
    void **places = t->places + worker * n;
    if (laci_part_engines_run(&t->workers, (int)worker, (const void *const *)places,
                              places + t->part.n_inputs, &ignored))
      t->failed = true;
  }
}

/* Returns the average size of a batch relative to a batch of the first shape set, since only that
 * is timed. */
static double relative_batch_size(const laci_walk_state *w) {
  const laci_graph *graph = &w->network->graph;
  double all = 0, first = 0;
  if (w->n_shape_sets == 1) return 1;
  for (int i = 0; i < graph->n_inputs; i++)
    first += (double)laci_network_value_bytes(w->networks[0], graph->inputs[i]);
  for (int64_t batch = 0; batch < w->cut.n_batches; batch++)
    for (int i = 0; i < graph->n_inputs; i++)
      all += (double)laci_network_value_bytes(w->networks[laci_walk_shape_set_of(w, batch)],
                                              graph->inputs[i]);
  return first > 0 ? all / first / (double)w->cut.n_batches : 1;
}

/* Returns the number of nodes that the calibration runs in the pruned network, divided by the
 * number in the dense one. */
static double compute_ratio_of_pruned_to_dense_nodes(const laci_walk_state *w) {
  double n[LACI_STREAMS] = {0};
  for (int s = 0; s < w->plan.n_stops; s++)
    for (int stream = 0; stream < LACI_STREAMS; stream++)
      n[stream] += w->plan.stops[s].part[stream].n_nodes;
  return n[LACI_STREAM_DENSE] > 0 ? n[LACI_STREAM_PRUNED] / n[LACI_STREAM_DENSE] : 0;
}

/* What a part takes, in seconds. */
typedef struct part_times {
  double batch, made; /* batch: a batch in every worker; made: the creation of the engines */
} part_times;

/* Times a part of the dense network. False: it cannot be run. */
static bool time_part(laci_walk_state *w, const laci_part *part, part_times *times) {
  trial_run t = {.w = w, .part = *part};
  laci_budget budget =
      w->options->budget ? *w->options->budget : laci_budget_with_limit(UINT64_MAX);
  lac_error ignored = {0};
  const double began = laci_clock_seconds();
  t.workers =
      (laci_part_engines){.n = w->n_workers, .budget = &budget, .engine = w->samples->engine};
  const lac_status st = laci_part_engines_create(w->network, &t.part, w->weights[LACI_STREAM_DENSE],
                                                 &t.workers, &ignored);
  times->made = laci_clock_seconds() - began;
  const bool ok = !st && set_trial_inputs_and_outputs(&t);
  const int tries = w->cut.n_batches > 8 * (int64_t)w->n_workers ? 2 : 1;
  for (int i = 0; ok && i < tries; i++) {
    const double start = laci_clock_seconds();
    laci_pool_for(w->options->pool, w->n_workers, 1, run_trial_batch, &t);
    const double spent = laci_clock_seconds() - start;
    if (i == 0 || spent < times->batch) times->batch = spent;
  }
  clear_trial_run(&t);
  return ok && !t.failed;
}

/* Returns the seconds of all runs, including the creation of engines; negative: not known. The walk
 * runs both networks up to the last stop. Layers are judged on batches held back, and so are the
 * two networks as a whole. */
static double forecast_runs(laci_walk_state *w) {
  laci_part part, all;
  part_times stops = {0}, whole = {0};
  if (!find_whole_network(w, &all) || !time_part(w, &all, &whole)) return -1;
  stops = whole;
  const bool has_part = find_part_of_stops(w, &part);
  if (!has_part) stops = (part_times){0};
  else if (part.n_nodes != all.n_nodes && !time_part(w, &part, &stops)) return -1;
  const double rounds = (double)laci_ceil_div(w->cut.n_batches, w->n_workers),
               judged = (double)laci_ceil_div(laci_walk_count_held_back(w), w->n_workers),
               networks = 1 + compute_ratio_of_pruned_to_dense_nodes(w);
  return relative_batch_size(w) *
             (stops.batch * (rounds * networks + judged * JUDGED) + whole.batch * judged * 2) +
         (double)w->n_shape_sets * (stops.made * (networks + JUDGED) + whole.made * 2);
}

/* ---- The time for Gram matrices ---- */

/* How a layer's Gram matrices are summed, which their time depends on. */
typedef struct sums_kind {
  laci_unfold unfold;
  bool asymmetric; /* two networks' values are read */
  double seconds;  /* time of a batch */
} sums_kind;

/* Returns the seconds of adding one batch to the layer's Gram matrices: those of an earlier one of
 * the n kinds, or those of a trial, which is then kept as the next kind. Negative: no memory. */
static double time_sums(const laci_walk_state *w, const laci_matrix_layer *layer, sums_kind *kinds,
                        int *n) {
  const bool asymmetric = !w->options->symmetric && w->plan.differs[layer->value];
  for (int i = 0; i < *n; i++)
    if (kinds[i].asymmetric == asymmetric && laci_unfold_equal(&kinds[i].unfold, &layer->unfold))
      return kinds[i].seconds;
  const double seconds = laci_grams_measure_seconds(
      &layer->unfold, asymmetric, laci_walk_max_positions(w, &layer->unfold), w->options->pool);
  kinds[(*n)++] = (sums_kind){layer->unfold, asymmetric, seconds};
  return seconds;
}

/* Do the layer and an earlier one share their Gram matrices? */
static bool are_sums_shared(const laci_walk_state *w, int l) {
  const laci_matrix_layer *layer = &w->plan.layers[l];
  for (int m = 0; m < l; m++)
    if (w->plan.layers[m].value == layer->value &&
        laci_unfold_equal(&w->plan.layers[m].unfold, &layer->unfold))
      return true;
  return false;
}

/* Returns the seconds of adding all batches to the Gram matrices of all layers; negative: no
 * memory. */
static double forecast_sums(laci_walk_state *w) {
  double seconds = 0;
  int n = 0;
  sums_kind *kinds = laci_alloc((size_t)w->plan.n_layers + 1, sizeof *kinds);
  if (!kinds) return -1;
  for (int l = 0; l < w->plan.n_layers && seconds >= 0; l++) {
    if (are_sums_shared(w, l)) continue;
    const double each = time_sums(w, &w->plan.layers[l], kinds, &n);
    seconds = each < 0 ? -1 : seconds + each * (double)w->cut.n_fitted;
  }
  laci_free(kinds);
  return seconds < 0 ? -1 : seconds * relative_batch_size(w);
}

/* ---- The forecast ---- */

/* Returns the index of the last stop for which the value is kept. The value is an output of the
 * part before stop s, so that is at least s. (A stop is a value that layers read; they are
 * calibrated there.) */
static int find_last_stop_that_keeps_value(const laci_walk_state *w, int value, int s) {
  return w->plan.last_stop[value] > s ? w->plan.last_stop[value] : s;
}

/* Returns the peak number of bytes of the values that are kept for later stops, over all
 * batches. */
static uint64_t bytes_between_layers(const laci_walk_state *w) {
  const laci_graph *graph = &w->network->graph;
  uint64_t most = 0, live = 0;
  for (int i = 0; i < graph->n_inputs; i++)
    if (w->plan.last_stop[graph->inputs[i]] >= 0)
      live += laci_walk_largest_value_bytes(w, graph->inputs[i]);
  for (int s = 0; s < w->plan.n_stops; s++) {
    for (int stream = 0; stream < LACI_STREAMS; stream++) {
      const laci_part *part = &w->plan.stops[s].part[stream];
      for (int i = 0; i < part->n_outputs; i++)
        live += laci_walk_largest_value_bytes(w, part->outputs[i]);
    }
    if (live > most) most = live;
    for (int before = 0; before <= s; before++)
      for (int stream = 0; stream < LACI_STREAMS; stream++) {
        const laci_part *part = &w->plan.stops[before].part[stream];
        for (int i = 0; i < part->n_outputs; i++)
          if (find_last_stop_that_keeps_value(w, part->outputs[i], before) == s)
            live -= laci_walk_largest_value_bytes(w, part->outputs[i]);
      }
    for (int i = 0; i < graph->n_inputs; i++)
      if (w->plan.last_stop[graph->inputs[i]] == s)
        live -= laci_walk_largest_value_bytes(w, graph->inputs[i]);
  }
  return most * (uint64_t)w->cut.n_batches;
}

/* Returns the bytes that the comparison of the two networks as a whole takes, after all layers have
 * new weights. */
static uint64_t bytes_of_comparison(laci_walk_state *w) {
  laci_part all;
  uint64_t bytes = 0;
  for (int l = 0; l < w->plan.n_layers; l++) {
    const laci_stored *stored = &w->network->graph.stored[w->plan.layers[l].stored];
    bytes += stored->size_bytes + laci_count_bytes_saturated(laci_shape_count(&stored->shape), 1);
  }
  if (find_whole_network(w, &all))
    bytes += 2 * (uint64_t)w->n_workers * laci_part_memory_bytes(w->network, &all);
  return bytes;
}

/* Returns the most memory that the process will have taken: what it has now and what the walk adds,
 * or what it has taken before. */
static uint64_t forecast_memory(laci_walk_state *w) {
  const uint64_t between = bytes_between_layers(w), limit = w->allocator.memory_limit,
                 values = between < limit ? between : limit, there = w->allocator.memory_bytes,
                 before = w->options->budget ? w->options->budget->needed : 0,
                 walk = w->memory - before + (values > there ? values - there : 0),
                 comparison = bytes_of_comparison(w), most = laci_memory_peak(),
                 all = laci_memory_resident() + ENGINES_BYTES +
                       (walk > comparison ? walk : comparison);
  return all > most ? all : most;
}

static void log_forecast(double seconds, uint64_t bytes) {
  char size[32], time[32];
  if (seconds < LEAST_SECONDS) return;
  if (seconds < 90) (void)snprintf(time, sizeof time, "%.0f seconds", seconds);
  else (void)snprintf(time, sizeof time, "%.1f minutes", seconds / 60);
  laci_log(LAC_LOG_INFO, "the calibration will take about %s and %s of memory", time,
           laci_size_text(bytes, size, sizeof size));
}

void laci_walk_forecast(laci_walk_state *w) {
  w->out->forecast_bytes = forecast_memory(w);
  const bool sums = w->options->solve || laci_score_needs_gram(w->options->score);
  const double began = laci_clock_seconds();
  if (!is_forecast_worth_trials(w, sums)) return;
  const double runs = forecast_runs(w);
  const double grams = runs >= 0 && sums ? forecast_sums(w) : 0;
  const double fits = grams >= 0 && sums ? laci_walk_forecast_fits(w) : 0;
  if (runs < 0 || grams < 0 || fits < 0) return;
  w->out->forecast_seconds =
      (runs + grams + fits) * (double)w->options->n_walks + laci_clock_seconds() - began;
  laci_log(LAC_LOG_DEBUG, "forecast of a walk: %.2f s of runs, %.2f s of sums, %.2f s of fits",
           runs, grams, fits);
  log_forecast(w->out->forecast_seconds, w->out->forecast_bytes);
}
