/* SPDX-License-Identifier: Apache-2.0
 * Measures how far a layer's outputs are from those of the dense network, on samples held back. The
 * layer is run with the stored weights, so the error includes their rounding. */
#include <string.h>

#include "base/budget.h"
#include "base/error.h"
#include "calibrate/recurrent_in.h"
#include "calibrate/residual_in.h"
#include "calibrate/workers_in.h"
#include "calibrate/walk_in.h"
#include "cpu/pool.h"

enum { WEIGHTS = 3 }; /* number of weights that are compared: the dense one and two candidates */

typedef struct trial {
  const laci_walk_state *w;
  const laci_matrix_layer *layer;
  const laci_residual *residual; /* what the layer makes up for; NULL: nothing */
  laci_part_engines workers[WEIGHTS];
  laci_unfold unfold;     /* how the layer's inputs are taken from its input value in a batch */
  int shape_set;          /* index of the shape set of the batches that are run */
  const int64_t *batches; /* [n_workers] index of the batch that each worker (engine) runs */
  int64_t n_outputs;
  void **in;           /* [n_workers, LACI_STREAMS] buffers for values that are stored in a file */
  float **out;         /* [n_workers, WEIGHTS] the layer's outputs with each of the weights */
  float **corrections; /* [n_workers] what is made up for in each worker's batch, as outputs; NULL
                          entries: nothing */
  laci_layer_errors *sums; /* [n_workers] errors of each worker's batch */
  lac_status *status;
  lac_error *errors;
} trial;

/* Finds the part that computes the layer's output from the value that it reads. */
static lac_status find_part_of_layer(const trial *t, laci_part *part, lac_error *err) {
  const laci_graph *graph = &t->w->network->graph;
  bool *there = laci_alloc((size_t)graph->n_values + 1, sizeof *there);
  if (!there) return laci_fail_memory(err, "a layer's outputs");
  there[t->layer->value] = true;
  int output = graph->nodes[t->layer->node].outputs[0];
  lac_status st = laci_part_find_nodes(t->w->networks[t->shape_set], there, 1, &output, part, err);
  part->product_only = t->layer->node;
  laci_free(there);
  return st;
}

/* Creates the engines for one of the weights, of which weights[layer->stored] are the bytes. */
static lac_status create_engines_of_weight(trial *t, int i, const laci_part *part,
                                           const uint8_t *const *weights, laci_budget *budget,
                                           lac_error *err) {
  const laci_walk_state *w = t->w;
  const laci_network *network = w->networks[t->shape_set];
  laci_graph *graph = NULL;
  t->workers[i] =
      (laci_part_engines){.n = w->n_workers, .budget = budget, .engine = w->samples->engine};
  if (!t->layer->is_recurrent)
    return laci_part_engines_create(network, part, weights, &t->workers[i], err);
  lac_status st = laci_recurrent_build_product(network, t->layer, t->unfold.images,
                                               weights[t->layer->stored], &graph, err);
  return st ? st : laci_part_engines_create_for_graph(graph, &t->workers[i], err);
}

static lac_status create_trial_engines(trial *t, const uint8_t *const others[2], lac_error *err) {
  const laci_walk_state *w = t->w;
  const laci_graph *graph = &w->network->graph;
  const uint8_t **weights = laci_alloc((size_t)graph->n_stored + 1, sizeof *weights);
  laci_budget budget =
      w->options->budget ? *w->options->budget : laci_budget_with_limit(UINT64_MAX);
  laci_part part = {.product_only = -1};
  lac_status st = weights ? LAC_OK : laci_fail_memory(err, "a layer's outputs");
  if (!st) {
    memcpy(weights, w->weights[LACI_STREAM_DENSE], (size_t)graph->n_stored * sizeof *weights);
    if (!t->layer->is_recurrent) st = find_part_of_layer(t, &part, err);
  }
  for (int i = 0; i < WEIGHTS && !st; i++) {
    if (i > 0) weights[t->layer->stored] = others[i - 1];
    st = create_engines_of_weight(t, i, &part, weights, &budget, err);
  }
  laci_free(weights);
  return st;
}

static lac_status alloc_trial_buffers(trial *t, lac_error *err) {
  const laci_walk_state *w = t->w;
  size_t workers = (size_t)w->n_workers;
  size_t in = (size_t)laci_walk_largest_value_bytes(w, t->layer->value);
  size_t out =
      (size_t)laci_matrix_layer_output_bytes(t->layer, w->networks[t->shape_set], &t->unfold);
  t->n_outputs = (int64_t)(out / sizeof(float));
  t->in = laci_alloc(workers * LACI_STREAMS, sizeof *t->in);
  t->out = laci_alloc(workers * WEIGHTS, sizeof *t->out);
  t->corrections = laci_alloc(workers, sizeof *t->corrections);
  t->sums = laci_alloc(workers, sizeof *t->sums);
  t->status = laci_alloc(workers, sizeof *t->status);
  t->errors = laci_alloc(workers, sizeof *t->errors);
  bool ok = t->in && t->out && t->corrections && t->sums && t->status && t->errors;
  for (size_t i = 0; ok && i < workers * WEIGHTS; i++)
    ok = (t->out[i] = laci_alloc(out, 1)) != NULL;
  for (size_t i = 0; ok && t->residual && i < workers; i++)
    ok = (t->corrections[i] = laci_alloc(out, 1)) != NULL;
  for (size_t i = 0; ok && i < workers * LACI_STREAMS; i++) {
    const laci_stored_batches *kept =
        laci_walk_stored_batches(w, (int)(i % LACI_STREAMS), t->layer->value);
    if (!laci_stored_batches_in_memory(kept)) ok = (t->in[i] = laci_alloc(in, 1)) != NULL;
  }
  return ok ? LAC_OK : laci_fail_memory(err, "a layer's outputs");
}

static void clear_trial(trial *t) {
  size_t workers = (size_t)t->w->n_workers;
  for (int i = 0; i < WEIGHTS; i++) laci_part_engines_clear(&t->workers[i]);
  for (size_t i = 0; t->out && i < workers * WEIGHTS; i++) laci_free(t->out[i]);
  for (size_t i = 0; t->in && i < workers * LACI_STREAMS; i++) laci_free(t->in[i]);
  for (size_t i = 0; t->corrections && i < workers; i++) laci_free(t->corrections[i]);
  laci_free(t->in);
  laci_free(t->out);
  laci_free(t->corrections);
  laci_free(t->sums);
  laci_free(t->status);
  laci_free(t->errors);
}

static lac_status run_batch_in_worker(const trial *t, int worker, int64_t batch, lac_error *err) {
  const void *x[LACI_STREAMS];
  lac_status st = LAC_OK;
  for (int stream = 0; stream < LACI_STREAMS && !st; stream++) {
    const laci_stored_batches *kept = laci_walk_stored_batches(t->w, stream, t->layer->value);
    void *buffer = t->in[worker * LACI_STREAMS + stream];
    x[stream] = buffer ? buffer : laci_stored_batches_address(kept, batch);
    if (buffer) st = laci_stored_batches_read(kept, batch, buffer, err);
  }
  float **y = t->out + worker * WEIGHTS;
  for (int i = 0; i < WEIGHTS && !st; i++) {
    const void *in = x[i == 0 ? LACI_STREAM_DENSE : LACI_STREAM_PRUNED];
    void *out = y[i];
    st = laci_part_engines_run(&t->workers[i], worker, &in, &out, err);
  }
  const float *correction = t->corrections[worker];
  if (correction && !st)
    st = laci_residual_compute(t->residual, t->w, batch, t->corrections[worker], err);
  laci_layer_errors sum = {0};
  for (int64_t j = 0; j < t->n_outputs && !st; j++) {
    const double dense = (double)y[0][j];
    const double wanted = dense + (correction ? (double)correction[j] : 0);
    const double first = wanted - (double)y[1][j], second = wanted - (double)y[2][j];
    sum.energy += dense * dense;
    sum.errors[0] += first * first;
    sum.errors[1] += second * second;
  }
  t->sums[worker] = sum;
  return st;
}

static void run_batches_in_workers(int64_t begin, int64_t end, void *context) {
  const trial *t = context;
  for (int64_t worker = begin; worker < end; worker++)
    t->status[worker] = run_batch_in_worker(t, (int)worker, t->batches[worker], &t->errors[worker]);
}

static lac_status sum_errors_of_batches(trial *t, const int64_t *batches, int64_t n_batches,
                                        laci_layer_errors *errors, lac_error *err) {
  const laci_walk_state *w = t->w;
  for (int64_t at = 0; at < n_batches; at += w->n_workers) {
    int64_t n = n_batches - at < w->n_workers ? n_batches - at : w->n_workers;
    t->batches = batches + at;
    memset(t->errors, 0, (size_t)n * sizeof *t->errors);
    laci_pool_for(w->options->pool, n, 1, run_batches_in_workers, t);
    for (int64_t worker = 0; worker < n; worker++) {
      if (t->status[worker] && err) *err = t->errors[worker];
      if (t->status[worker]) return t->status[worker];
      errors->energy += t->sums[worker].energy;
      for (int i = 0; i < 2; i++) errors->errors[i] += t->sums[worker].errors[i];
    }
  }
  return LAC_OK;
}

lac_status laci_walk_measure_layer_error(laci_walk_state *w, const laci_matrix_layer *layer,
                                         const laci_residual *residual,
                                         const uint8_t *const others[2], laci_layer_errors *errors,
                                         lac_error *err) {
  int64_t *batches = laci_alloc((size_t)w->cut.n_batches + 1, sizeof *batches);
  *errors = (laci_layer_errors){0};
  lac_status st = batches ? LAC_OK : laci_fail_memory(err, "a layer's outputs");
  for (int shape_set = 0; shape_set < w->n_shape_sets && !st; shape_set++) {
    trial t = {.w = w, .layer = layer, .residual = residual, .shape_set = shape_set};
    const int64_t n = laci_walk_list_batches(w, shape_set, laci_walk_first_held_back(w), batches);
    if (n == 0) continue;
    st = laci_walk_describe_layer_input(w, layer, shape_set, &t.unfold, err);
    if (!st) st = create_trial_engines(&t, others, err);
    if (!st) st = alloc_trial_buffers(&t, err);
    if (!st) st = sum_errors_of_batches(&t, batches, n, errors, err);
    clear_trial(&t);
  }
  laci_free(batches);
  return st;
}
