/* SPDX-License-Identifier: Apache-2.0
 * Chooses samples by the statistics of the network's normalizations (choose.h).
 *
 * Each sample has a row of features: for every channel of every normalization's input, how far its
 * mean and its squared deviations are from the stored ones. Samples are chosen so that the sum of
 * their rows is as near to zero as possible. */
#include "calibrate/choose.h"

#include <math.h>
#include <string.h>

#include "base/budget.h"
#include "base/error.h"
#include "base/memory.h"
#include "calibrate/network_in.h"
#include "calibrate/norms_in.h"
#include "calibrate/observe_in.h"
#include "cpu/pool.h"
#include "graph/graph.h"
#include "tensor/buf.h"

enum { MOST_BATCH = 32, SUMS = 8 };
static const float most_apart = 50; /* limit of the absolute value of a feature before it is
                                       weighted */

typedef struct chooser {
  const laci_choose_options *how;
  laci_norms norms;
  size_t width;        /* number of features of a sample, a multiple of SUMS */
  float *features;     /* [candidates->count, width] features of each candidate */
  float *sum;          /* [width] sum of the rows of features of the chosen samples */
  const float *newest; /* [width] row of features of the sample that was chosen last */
  double *cost;        /* [candidates->count] cost of choosing each candidate next */
} chooser;

/* ---- Features ---- */

static float clip_and_weight_feature(double apart, double weight) {
  const double least = -(double)most_apart, most = (double)most_apart;
  return (float)(weight * (apart < least ? least : apart < most ? apart : most));
}

/* Sums how far n numbers are from the mean, and the squares of that, by partial sums in a fixed
 * order. */
static void sum_deviations(const float *x, int64_t n, double mean, double *sum, double *squares) {
  double sums[SUMS] = {0}, more[SUMS] = {0};
  int64_t p = 0;
  for (; p + SUMS <= n; p += SUMS) {
    for (int64_t k = 0; k < SUMS; k++) {
      const double apart = (double)x[p + k] - mean;
      sums[k] += apart;
      more[k] += apart * apart;
    }
  }
  for (; p < n; p++) {
    const double apart = (double)x[p] - mean;
    sums[0] += apart;
    more[0] += apart * apart;
  }
  for (size_t k = 0; k < SUMS; k++) {
    *sum += sums[k];
    *squares += more[k];
  }
}

/* Writes to `row` a sample's features for one normalization, from that normalization's input x
 * [channels, inner]. */
static void compute_features_for_norm(const chooser *c, const laci_norm *n, const float *x,
                                      int64_t inner, float *row) {
  const double weight = 1 / sqrt((double)n->channels * c->norms.n);
  for (int64_t channel = 0; channel < n->channels; channel++) {
    const double mean = n->mean[channel], variance = n->variance[channel];
    double sum = 0, squares = 0;
    sum_deviations(x + channel * inner, inner, mean, &sum, &squares);
    row[2 * n->first + 2 * (size_t)channel] =
        clip_and_weight_feature(sum / (double)inner / sqrt(variance), weight);
    row[2 * n->first + 2 * (size_t)channel + 1] =
        clip_and_weight_feature(squares / (double)inner / variance - 1, weight);
  }
}

static lac_status compute_features_of_batch(void *context, const laci_observed *seen,
                                            lac_error *err) {
  const chooser *c = context;
  const laci_norm *n = &c->norms.list[seen->place];
  const laci_shape *shape = seen->shape;
  (void)err;
  if (shape->rank < 2 || shape->dims[1] != n->channels || shape->dims[0] < 1 || seen->n < 1)
    return LAC_OK;
  const int64_t sample = seen->n / shape->dims[0], inner = sample / n->channels;
  for (int64_t k = 0; k < shape->dims[0] && seen->first + k < c->how->candidates->count; k++)
    compute_features_for_norm(c, n, seen->elements + k * sample, inner,
                              c->features + (size_t)(seen->first + k) * c->width);
  return LAC_OK;
}

static lac_status measure_candidates(chooser *c, const laci_graph *graph, int64_t *n_measured,
                                     lac_error *err) {
  const laci_calibration_samples *candidates = c->how->candidates;
  const laci_weighted_graph from = {.graph = graph};
  laci_calibration_cut cut;
  laci_observation *observation = NULL;
  lac_status st = laci_calibration_cut_samples(
      candidates->count, MOST_BATCH, laci_calibration_required_batch(graph, candidates), &cut, err);
  if (st) return st;
  const laci_observe_options how = {.values = c->norms.values,
                                    .n_values = c->norms.n,
                                    .samples = candidates,
                                    .batch = cut.batch,
                                    .n_batches = cut.n_batches,
                                    .pool = c->how->pool,
                                    .budget = c->how->budget,
                                    .on_value = compute_features_of_batch,
                                    .context = c,
                                    .what = "statistics of samples"};
  *n_measured = cut.batch * cut.n_batches;
  st = laci_observe_open(&from, &how, &observation, err);
  if (!st) st = laci_observe_run(observation, err);
  laci_observe_close(observation);
  return st;
}

/* ---- The choice ---- */

/* Returns the inner product of two rows, by partial sums in a fixed order. */
static double multiply_rows(const float *a, const float *b, size_t width) {
  float sums[SUMS] = {0};
  double sum = 0;
  for (size_t at = 0; at < width; at += SUMS)
    for (size_t k = 0; k < SUMS; k++) sums[k] += a[at + k] * b[at + k];
  for (size_t k = 0; k < SUMS; k++) sum += (double)sums[k];
  return sum;
}

/* Adds to each cost what it grows by when the row c->newest joins the sum. */
static void add_newest_to_costs(int64_t begin, int64_t end, void *context) {
  const chooser *c = context;
  for (int64_t at = begin; at < end; at++)
    if (c->cost[at] < INFINITY)
      c->cost[at] += multiply_rows(c->newest, c->features + (size_t)at * c->width, c->width);
}

static double sum_of_squares(const float *row, size_t width) {
  double sum = 0;
  for (size_t at = 0; at < width; at++) sum += (double)row[at] * (double)row[at];
  return sum;
}

static void add_row_to_sum(chooser *c, int64_t place) {
  const float *row = c->features + (size_t)place * c->width;
  for (size_t at = 0; at < c->width; at++) c->sum[at] += row[at];
}

/* Chooses among the first n_measured candidates. The cost of adding row b to the sum a is <a, b> +
 * <b, b> / 2, half of what the square of the sum's norm grows by. An infinite cost marks a
 * candidate that is chosen already. */
static void choose_rows(chooser *c, int64_t n_measured, int64_t *places, laci_choice *choice) {
  const double n = (double)c->how->n;
  for (int64_t k = 0; k < c->how->n; k++) add_row_to_sum(c, k);
  choice->first = sum_of_squares(c->sum, c->width) / (n * n);
  memset(c->sum, 0, c->width * sizeof *c->sum);
  for (int64_t at = 0; at < n_measured; at++)
    c->cost[at] = sum_of_squares(c->features + (size_t)at * c->width, c->width) / 2;
  for (int64_t k = 0; k < c->how->n; k++) {
    int64_t best = -1;
    for (int64_t at = 0; at < n_measured; at++)
      if (c->cost[at] < INFINITY && (best < 0 || c->cost[at] < c->cost[best])) best = at;
    places[k] = best;
    c->cost[best] = INFINITY;
    add_row_to_sum(c, best);
    c->newest = c->features + (size_t)best * c->width;
    laci_pool_for(c->how->pool, n_measured, 16, add_newest_to_costs, c);
  }
  choice->chosen = sum_of_squares(c->sum, c->width) / (n * n);
}

static lac_status choose_samples_by_norms(chooser *c, const laci_graph *graph, int64_t *places,
                                          laci_choice *choice, lac_error *err) {
  const size_t count = (size_t)c->how->candidates->count;
  int64_t n_measured = 0;
  c->features = laci_alloc(count * c->width, sizeof *c->features);
  c->sum = laci_alloc(c->width, sizeof *c->sum);
  c->cost = laci_alloc(count, sizeof *c->cost);
  if (!c->features || !c->sum || !c->cost) return laci_fail_memory(err, "the choice of samples");
  lac_status st = measure_candidates(c, graph, &n_measured, err);
  if (!st && n_measured >= c->how->n) choose_rows(c, n_measured, places, choice);
  return st;
}

lac_status laci_choose_samples(const laci_graph *graph, const laci_choose_options *options,
                               int64_t *places, laci_choice *choice, lac_error *err) {
  chooser c = {.how = options};
  *choice = (laci_choice){.n_norms = 0};
  for (int64_t k = 0; k < options->n; k++) places[k] = k;
  lac_status st = laci_norms_find(graph, &c.norms, err);
  c.width = (2 * c.norms.n_channels + SUMS - 1) / SUMS * SUMS;
  choice->n_norms = c.norms.n;
  if (!st && c.norms.n > 0) st = choose_samples_by_norms(&c, graph, places, choice, err);
  laci_free(c.features);
  laci_free(c.sum);
  laci_free(c.cost);
  laci_norms_clear(&c.norms);
  return st;
}
