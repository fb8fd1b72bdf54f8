/* SPDX-License-Identifier: Apache-2.0
 * Each sample has a row of features: for every channel of every normalization's input, how far its
 * mean and its squared deviations are from the stored ones. The rows of the chosen samples are to
 * have the sum zero. */
#include "calibrate/choose.h"

#include <math.h>
#include <string.h>

#include "base/budget.h"
#include "base/error.h"
#include "base/memory.h"
#include "calibrate/network_in.h"
#include "calibrate/observe_in.h"
#include "cpu/pool.h"
#include "graph/graph.h"
#include "tensor/buf.h"

enum { MOST_BATCH = 32, SUMS = 8 };
static const float most_apart = 50; /* of a feature, before it is weighted */

typedef struct norm {
  int value; /* its input */
  int64_t channels;
  size_t first;            /* index of its first feature; it has 2 * channels */
  double *mean, *variance; /* [channels] */
} norm;

typedef struct chooser {
  const laci_choose_options *how;
  laci_arena arena;
  norm *norms;
  int n_norms;
  int *values;     /* [n_norms] */
  size_t width;    /* features of a sample, a multiple of SUMS */
  float *features; /* [candidates->count, width] */
  float *sum;      /* [width] of the chosen rows */
  double *cost;    /* [candidates->count] of the next choice */
} chooser;

/* ---- The normalizations ---- */

static const laci_stored *stored_input(const laci_graph *graph, const laci_node *node, int input) {
  if (node->n_inputs <= input || node->inputs[input] < 0) return NULL;
  const int id = graph->values[node->inputs[input]].stored;
  return id < 0 || !graph->stored[id].bytes || !laci_dtype_is_float(graph->stored[id].dtype)
             ? NULL
             : &graph->stored[id];
}

static bool has_statistics(const laci_graph *graph, const laci_node *node) {
  if (node->domain[0] || strcmp(node->type, "BatchNormalization") != 0 || node->body) return false;
  const laci_stored *mean = stored_input(graph, node, 3), *variance = stored_input(graph, node, 4);
  return mean && variance && mean->shape.rank == 1 && variance->shape.rank == 1 &&
         mean->shape.dims[0] > 0 && mean->shape.dims[0] == variance->shape.dims[0] &&
         node->inputs[0] >= 0 && graph->values[node->inputs[0]].producer >= 0;
}

/* Channels that hardly vary count as if they varied a little: else they alone would decide. */
static void raise_variances(norm *n) {
  double sum = 0;
  for (int64_t k = 0; k < n->channels; k++) sum += fmax(n->variance[k], 0);
  const double least = fmax(1e-3 * sum / (double)n->channels, 1e-30);
  for (int64_t k = 0; k < n->channels; k++) n->variance[k] = fmax(n->variance[k], least);
}

static lac_status add_norm(chooser *c, const laci_graph *graph, const laci_node *node,
                           lac_error *err) {
  const laci_stored *mean = stored_input(graph, node, 3), *variance = stored_input(graph, node, 4);
  norm *n = &c->norms[c->n_norms];
  for (int k = 0; k < c->n_norms; k++)
    if (c->norms[k].value == node->inputs[0]) return LAC_OK; /* two normalizations of one value */
  *n = (norm){.value = node->inputs[0], .channels = mean->shape.dims[0], .first = c->width};
  n->mean = laci_arena_alloc(&c->arena, (size_t)n->channels, sizeof *n->mean);
  n->variance = laci_arena_alloc(&c->arena, (size_t)n->channels, sizeof *n->variance);
  if (!n->mean || !n->variance) return laci_fail_memory(err, "the choice of samples");
  laci_read_f(mean->dtype, mean->bytes, 0, n->channels, n->mean);
  laci_read_f(variance->dtype, variance->bytes, 0, n->channels, n->variance);
  raise_variances(n);
  c->values[c->n_norms++] = n->value;
  c->width += 2 * (size_t)n->channels;
  return LAC_OK;
}

static lac_status find_norms(chooser *c, const laci_graph *graph, lac_error *err) {
  c->norms = laci_arena_alloc(&c->arena, (size_t)graph->n_nodes + 1, sizeof *c->norms);
  c->values = laci_arena_alloc(&c->arena, (size_t)graph->n_nodes + 1, sizeof *c->values);
  if (!c->norms || !c->values) return laci_fail_memory(err, "the choice of samples");
  for (int id = 0; id < graph->n_nodes; id++) {
    if (!has_statistics(graph, &graph->nodes[id])) continue;
    lac_status st = add_norm(c, graph, &graph->nodes[id], err);
    if (st) return st;
  }
  c->width = (c->width + SUMS - 1) / SUMS * SUMS;
  return LAC_OK;
}

/* ---- Features ---- */

static float weighted(double apart, double weight) {
  const double least = -(double)most_apart, most = (double)most_apart;
  return (float)(weight * (apart < least ? least : apart < most ? apart : most));
}

/* Sets the features of one sample for a normalization whose input is x [channels, inner]. */
static void set_features(const chooser *c, const norm *n, const float *x, int64_t inner,
                         float *row) {
  const double weight = 1 / sqrt((double)n->channels * c->n_norms);
  for (int64_t channel = 0; channel < n->channels; channel++) {
    const double mean = n->mean[channel], variance = n->variance[channel];
    double sum = 0, squares = 0;
    for (int64_t p = 0; p < inner; p++) {
      const double apart = (double)x[channel * inner + p] - mean;
      sum += apart;
      squares += apart * apart;
    }
    row[n->first + 2 * (size_t)channel] = weighted(sum / (double)inner / sqrt(variance), weight);
    row[n->first + 2 * (size_t)channel + 1] =
        weighted(squares / (double)inner / variance - 1, weight);
  }
}

static lac_status see_value(void *context, const laci_observed *seen, lac_error *err) {
  const chooser *c = context;
  const norm *n = &c->norms[seen->place];
  const laci_shape *shape = seen->shape;
  (void)err;
  if (shape->rank < 2 || shape->dims[1] != n->channels || shape->dims[0] < 1 || seen->n < 1)
    return LAC_OK;
  const int64_t sample = seen->n / shape->dims[0], inner = sample / n->channels;
  for (int64_t k = 0; k < shape->dims[0] && seen->first + k < c->how->candidates->count; k++)
    set_features(c, n, seen->elements + k * sample, inner,
                 c->features + (size_t)(seen->first + k) * c->width);
  return LAC_OK;
}

static lac_status measure(chooser *c, const laci_graph *graph, int64_t *looked_at, lac_error *err) {
  const laci_calibration_samples *candidates = c->how->candidates;
  const laci_weighted_graph from = {.graph = graph};
  laci_calibration_cut cut;
  laci_observation *observation = NULL;
  lac_status st = laci_calibration_cut_samples(
      candidates->count, MOST_BATCH, laci_calibration_fixed_batch(graph, candidates), &cut, err);
  if (st) return st;
  const laci_observe_options how = {.values = c->values,
                                    .n_values = c->n_norms,
                                    .samples = candidates,
                                    .batch = cut.batch,
                                    .n_batches = cut.n_batches,
                                    .pool = c->how->pool,
                                    .budget = c->how->budget,
                                    .see = see_value,
                                    .context = c,
                                    .what = "statistics of samples"};
  *looked_at = cut.batch * cut.n_batches;
  st = laci_observe_open(&from, &how, &observation, err);
  if (!st) st = laci_observe_run(observation, err);
  laci_observe_close(observation);
  return st;
}

/* ---- The choice ---- */

/* a b + b b / 2 of two rows, by partial sums in a fixed order: half of what adding b to the sum a
 * changes the sum's square by. */
static double cost_of(const float *a, const float *b, size_t width) {
  float sums[SUMS] = {0};
  double sum = 0;
  for (size_t at = 0; at < width; at += SUMS)
    for (size_t k = 0; k < SUMS; k++) sums[k] += (a[at + k] + 0.5F * b[at + k]) * b[at + k];
  for (size_t k = 0; k < SUMS; k++) sum += (double)sums[k];
  return sum;
}

static void weigh_rows(int64_t begin, int64_t end, void *context) {
  const chooser *c = context;
  for (int64_t at = begin; at < end; at++)
    if (c->cost[at] < INFINITY)
      c->cost[at] = cost_of(c->sum, c->features + (size_t)at * c->width, c->width);
}

static double square_of(const float *row, size_t width) {
  double sum = 0;
  for (size_t at = 0; at < width; at++) sum += (double)row[at] * (double)row[at];
  return sum;
}

static void add_row(chooser *c, int64_t place) {
  const float *row = c->features + (size_t)place * c->width;
  for (size_t at = 0; at < c->width; at++) c->sum[at] += row[at];
}

/* Chooses of the first looked_at candidates; a cost that is infinite marks one that is taken. */
static void choose(chooser *c, int64_t looked_at, int64_t *places, laci_choice *choice) {
  const double n = (double)c->how->n;
  for (int64_t k = 0; k < c->how->n; k++) add_row(c, k);
  choice->first = square_of(c->sum, c->width) / (n * n);
  memset(c->sum, 0, c->width * sizeof *c->sum);
  for (int64_t k = 0; k < c->how->n; k++) {
    int64_t best = -1;
    laci_pool_for(c->how->pool, looked_at, 16, weigh_rows, c);
    for (int64_t at = 0; at < looked_at; at++)
      if (c->cost[at] < INFINITY && (best < 0 || c->cost[at] < c->cost[best])) best = at;
    places[k] = best;
    c->cost[best] = INFINITY;
    add_row(c, best);
  }
  choice->chosen = square_of(c->sum, c->width) / (n * n);
}

static lac_status choose_by_norms(chooser *c, const laci_graph *graph, int64_t *places,
                                  laci_choice *choice, lac_error *err) {
  const size_t count = (size_t)c->how->candidates->count;
  int64_t looked_at = 0;
  c->features = laci_alloc(count * c->width, sizeof *c->features);
  c->sum = laci_alloc(c->width, sizeof *c->sum);
  c->cost = laci_alloc(count, sizeof *c->cost);
  if (!c->features || !c->sum || !c->cost) return laci_fail_memory(err, "the choice of samples");
  lac_status st = measure(c, graph, &looked_at, err);
  if (!st && looked_at >= c->how->n) choose(c, looked_at, places, choice);
  return st;
}

lac_status laci_choose_samples(const laci_graph *graph, const laci_choose_options *options,
                               int64_t *places, laci_choice *choice, lac_error *err) {
  chooser c = {.how = options};
  *choice = (laci_choice){.n_norms = 0};
  for (int64_t k = 0; k < options->n; k++) places[k] = k;
  lac_status st = find_norms(&c, graph, err);
  choice->n_norms = c.n_norms;
  if (!st && c.n_norms > 0) st = choose_by_norms(&c, graph, places, choice, err);
  laci_free(c.features);
  laci_free(c.sum);
  laci_free(c.cost);
  laci_arena_clear(&c.arena);
  return st;
}
