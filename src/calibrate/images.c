/* SPDX-License-Identifier: Apache-2.0
 * Fits images to the stored statistics of a network's normalizations (images.h).
 *
 * Each worker fits a batch with two engines of one thread, a lone worker with all threads. The
 * first computes the inputs x of the normalizations. From these a target t = x - g follows, where g
 * is the gradient of the loss by x. The second engine runs the loss sum |x - t|^2 / 2, whose
 * gradient by x is g, back to the pixels. All g have the same large factor, so that x - t keeps its
 * digits. */
#include "calibrate/images.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/budget.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/min.h"
#include "calibrate/network_in.h"
#include "calibrate/norms_in.h"
#include "cpu/pool.h"
#include "engine/engine.h"
#include "graph/gradient.h"
#include "graph/graph.h"
#include "graph/infer.h"

enum { MOST_WORKERS = 16, HELD_PART = 4, COLOURS = 3 };
static const double rate = 0.05, first_decay = 0.9, second_decay = 0.999, smallest = 1e-8,
                    variation = 0.02;
static const uint64_t most_bytes = (uint64_t)4 << 30; /* limit of the memory of all workers, if
                                                         there are several */
static const char what[] = "fitted images";

/** Two engines of one thread, and the buffers of the batch of images that they fit. Several workers
 * fit different batches at the same time. */
typedef struct fit_worker {
  const struct fitting *fit;
  laci_engine *forward, *backward;
  void **values;          /* [n_norms] inputs of the normalizations, which are then replaced by
                             their targets */
  const void **inputs;    /* [1 + n_norms] inputs of the backward engine, in its order */
  float *gradient;        /* [batch, image] gradient of the loss by the pixels */
  float *first, *second;  /* [batch, image] first and second moment of Adam */
  float *images;          /* the images of the batch */
  laci_fitted_images sum; /* sum of the results of this worker's batches */
  lac_status status;
  lac_error err;
} fit_worker;

typedef struct fitting {
  const laci_fit_images_options *how;
  laci_norms norms;
  laci_network *network;
  laci_graph *forward, *backward; /* forward: from the images to the inputs of the normalizations;
                                     backward: to the gradient by the images */
  int64_t image;                  /* number of floats of an image */
  int64_t *inner;                 /* [n_norms] for each normalization's input, the number of
                                     elements of a channel of one image */
  double factor;                  /* common factor of all gradients, which keeps them large */
  int engine_threads; /* number of threads of each engine: 1, or all if there is one worker */
  fit_worker workers[MOST_WORKERS];
  int n_workers;
  float *images;
  laci_fitted_images *batches; /* [n / batch] result for each batch */
} fitting;

static bool is_held_back_norm(int k) { return k % HELD_PART == HELD_PART - 1; }

/* ---- Graphs ---- */

static lac_status build_forward_graph(fitting *f, laci_graph **graph, lac_error *err) {
  laci_part part;
  bool *there = laci_alloc((size_t)f->network->graph.n_values + 1, sizeof *there);
  if (!there) return laci_fail_memory(err, what);
  there[f->network->graph.inputs[0]] = true;
  lac_status st = laci_part_find_nodes(f->network, there, f->norms.n, f->norms.values, &part, err);
  if (!st) st = laci_part_build_graph(f->network, &part, f->network->weights, graph, err);
  laci_free(there);
  if (!st && ((*graph)->n_inputs != 1 || (*graph)->n_outputs != f->norms.n))
    st = laci_fail(err, LAC_UNSUPPORTED, "%s: inputs of normalizations are not of the image", what);
  return st;
}

/* Adds a copy of the node `like` with one output, which has that name; returns the output's
 * index. */
static int add_node(laci_graph *graph, const laci_node *like, const char *name, lac_status *st,
                    lac_error *err) {
  int output = laci_graph_intern_value(graph, name), id;
  laci_node node = *like;
  node.name = name;
  node.n_outputs = 1;
  node.outputs = &output;
  node.version = node.domain ? 1 : 22;
  *st = output < 0 ? laci_fail_memory(err, what) : laci_graph_add_node(graph, &node, &id, err);
  return output;
}

/* Adds an input for a target of value x to the graph, and adds half their squared distance to the
 * loss. */
static lac_status add_distance_to_loss(laci_graph *graph, int x, int k, int *loss, lac_error *err) {
  const laci_attr attrs[] = {laci_attr_float("factor", 0.5F), laci_attr_int("relative", 0)};
  const laci_type type = graph->values[x].type;
  char name[64];
  (void)snprintf(name, sizeof name, "lacuna/fit/target%d", k);
  lac_status st = laci_graph_add_input(graph, name, &type, err);
  if (st) return st;
  const int pair[] = {x, laci_graph_find_value(graph, name)};
  const laci_node distance = {.type = "SquaredError",
                              .domain = "lacuna",
                              .n_inputs = 2,
                              .inputs = pair,
                              .n_attrs = 2,
                              .attrs = attrs};
  (void)snprintf(name, sizeof name, "lacuna/fit/distance%d", k);
  const int sum[] = {*loss, add_node(graph, &distance, name, &st, err)};
  if (st || *loss < 0) {
    *loss = sum[1];
    return st;
  }
  (void)snprintf(name, sizeof name, "lacuna/fit/loss%d", k);
  *loss =
      add_node(graph, &(laci_node){.type = "Add", .n_inputs = 2, .inputs = sum}, name, &st, err);
  return st;
}

static lac_status finish_and_infer_graph(laci_graph *graph, lac_error *err) {
  lac_status st = laci_graph_finish(graph, err);
  return st ? st : laci_graph_infer(graph, NULL, 0, err);
}

/* Builds the graph whose only output is the gradient of the loss by the pixels. */
static lac_status build_backward_graph(fitting *f, lac_error *err) {
  lac_status st = build_forward_graph(f, &f->backward, err);
  laci_graph *graph = f->backward;
  int loss = -1, gradient = -1;
  for (int k = 0; k < f->norms.n && !st; k++) {
    graph->values[graph->outputs[k]].is_output = false;
    if (!is_held_back_norm(k)) st = add_distance_to_loss(graph, graph->outputs[k], k, &loss, err);
  }
  if (st) return st;
  graph->n_outputs = 0;
  st = finish_and_infer_graph(graph, err);
  if (!st) st = laci_gradient_build(graph, loss, 1, &graph->inputs[0], &gradient, err);
  if (!st) st = laci_graph_add_output(graph, graph->values[gradient].name, err);
  return st ? st : finish_and_infer_graph(graph, err);
}

static lac_status measure_norm_sizes(fitting *f, lac_error *err) {
  double sum = 0;
  int n = 0;
  f->inner = laci_alloc((size_t)f->norms.n, sizeof *f->inner);
  if (!f->inner) return laci_fail_memory(err, what);
  for (int k = 0; k < f->norms.n; k++) {
    const laci_norm *norm = &f->norms.list[k];
    const laci_shape *shape = &f->forward->values[f->forward->outputs[k]].type.shape;
    double variance = 0;
    if (shape->rank < 2 || shape->dims[0] != f->how->batch || shape->dims[1] != norm->channels)
      return laci_fail(err, LAC_UNSUPPORTED, "%s: a normalization of another layout", what);
    f->inner[k] = laci_shape_count(shape) / f->how->batch / norm->channels;
    for (int64_t c = 0; c < norm->channels; c++) variance += norm->variance[c];
    sum += (double)f->inner[k] * variance;
    n++;
  }
  f->factor = (double)f->how->batch * sum;
  return n > 0 && f->factor > 0 ? LAC_OK
                                : laci_fail(err, LAC_UNSUPPORTED, "%s: no statistics", what);
}

/* ---- Workers ---- */

static void destroy_worker_engines(fit_worker *worker) {
  for (int k = 0; worker->values && k < worker->fit->norms.n; k++) laci_free(worker->values[k]);
  laci_free(worker->values);
  laci_free(worker->inputs);
  laci_free(worker->gradient);
  laci_free(worker->first);
  laci_free(worker->second);
  laci_engine_destroy(worker->forward);
  laci_engine_destroy(worker->backward);
  *worker = (fit_worker){.fit = NULL};
}

static lac_status create_worker_engines(const fitting *f, fit_worker *worker, laci_budget *budget,
                                        lac_error *err) {
  const laci_engine_options options = {.threads = f->engine_threads,
                                       .dense_only = true,
                                       .finite = LACI_FINITE_ASSUMED,
                                       .budget = budget};
  const size_t pixels = (size_t)(f->how->batch * f->image), n = (size_t)f->norms.n;
  worker->fit = f;
  lac_status st = laci_engine_create(f->forward, &options, &worker->forward, err);
  if (!st) st = laci_engine_create(f->backward, &options, &worker->backward, err);
  if (st) return st;
  worker->values = laci_alloc(n, sizeof *worker->values);
  worker->inputs = laci_alloc(n + 1, sizeof *worker->inputs);
  worker->gradient = laci_alloc(pixels, sizeof *worker->gradient);
  worker->first = laci_alloc(pixels, sizeof *worker->first);
  worker->second = laci_alloc(pixels, sizeof *worker->second);
  for (size_t k = 0; k < n; k++)
    laci_budget_add_unnamed(
        budget,
        laci_count_bytes_saturated(f->how->batch * f->norms.list[k].channels * f->inner[k], 4));
  laci_budget_add_unnamed(budget, laci_count_bytes_saturated(3 * (int64_t)pixels, 4));
  st = laci_budget_check(budget, what, err);
  if (st) return st;
  bool ok = worker->values && worker->inputs && worker->gradient && worker->first && worker->second;
  for (size_t k = 0; ok && k < n; k++) {
    const size_t count = (size_t)(f->how->batch * f->norms.list[k].channels * f->inner[k]);
    ok = (worker->values[k] = laci_alloc(count, sizeof(float))) != NULL;
  }
  return ok ? LAC_OK : laci_fail_memory(err, what);
}

/* Creates the only worker again, with engines of all threads: its engines take too much memory for
 * two workers. */
static lac_status give_worker_all_threads(fitting *f, lac_error *err) {
  laci_budget budget = f->how->budget ? *f->how->budget : laci_budget_with_limit(UINT64_MAX);
  destroy_worker_engines(&f->workers[0]);
  f->engine_threads = laci_pool_threads(f->how->pool);
  return create_worker_engines(f, &f->workers[0], &budget, err);
}

static lac_status create_all_workers(fitting *f, lac_error *err) {
  laci_budget budget = f->how->budget ? *f->how->budget : laci_budget_with_limit(UINT64_MAX);
  const int n_threads = laci_pool_threads(f->how->pool);
  const int64_t most = laci_min(n_threads, laci_min(MOST_WORKERS, f->how->n / f->how->batch));
  f->engine_threads = most > 1 ? 1 : n_threads;
  const uint64_t before = budget.needed;
  lac_status st = create_worker_engines(f, &f->workers[0], &budget, err);
  const uint64_t each = budget.needed - before;
  f->n_workers = 1;
  while (!st && f->n_workers < most && (uint64_t)(f->n_workers + 1) * each <= most_bytes) {
    if (create_worker_engines(f, &f->workers[f->n_workers], &budget, NULL)) {
      destroy_worker_engines(&f->workers[f->n_workers]);
      break;
    }
    f->n_workers++;
  }
  const bool alone = f->n_workers == 1 && f->engine_threads < n_threads;
  return !st && alone ? give_worker_all_threads(f, err) : st;
}

/* ---- A step ---- */

typedef struct moments {
  double mean, deviation;
} moments;

static moments measure_moments(const float *x, int64_t batch, int64_t stride, int64_t inner) {
  double sum = 0, squares = 0;
  for (int64_t n = 0; n < batch; n++) {
    const float *from = x + n * stride;
    for (int64_t p = 0; p < inner; p++) sum += (double)from[p];
  }
  const double count = (double)(batch * inner), mean = sum / count;
  for (int64_t n = 0; n < batch; n++) {
    const float *from = x + n * stride;
    for (int64_t p = 0; p < inner; p++) {
      const double apart = (double)from[p] - mean;
      squares += apart * apart;
    }
  }
  return (moments){mean, sqrt(squares / count)};
}

/* Replaces channel c of a normalization's input x by the target x - g, where g is the gradient of
 * the loss by x. Returns what the channel adds to the loss. */
static double set_channel_target(const fitting *f, const laci_norm *norm, int64_t c, int64_t inner,
                                 float *x, double weight) {
  const int64_t batch = f->how->batch, stride = norm->channels * inner;
  const moments m = measure_moments(x, batch, stride, inner);
  const double wanted = sqrt(norm->variance[c]), apart = m.mean - norm->mean[c];
  const double wider = m.deviation / wanted - 1, count = (double)(batch * inner);
  const double scale = weight * f->factor / count;
  const double slope = scale * 2 * wider / (wanted * fmax(m.deviation, 1e-3 * wanted));
  const double shift = scale * 2 * apart / norm->variance[c] - slope * m.mean;
  for (int64_t n = 0; n < batch && weight > 0; n++) {
    float *to = x + n * stride;
    for (int64_t p = 0; p < inner; p++)
      to[p] = (float)((double)to[p] - (shift + slope * (double)to[p]));
  }
  return apart * apart / norm->variance[c] + wider * wider;
}

/* Replaces the inputs of the normalizations by their targets. *loss, *held: the distances from the
 * stored statistics, of the normalizations in the loss and of those held back. */
static void set_targets_of_norms(const fit_worker *worker, double *loss, double *held) {
  const fitting *f = worker->fit;
  double sums[2] = {0};
  int n[2] = {0};
  for (int k = 0; k < f->norms.n; k++) n[is_held_back_norm(k)]++;
  for (int k = 0; k < f->norms.n; k++) {
    const laci_norm *norm = &f->norms.list[k];
    double sum = 0;
    const double weight = is_held_back_norm(k) ? 0 : 1 / ((double)norm->channels * n[0]);
    for (int64_t c = 0; c < norm->channels; c++) {
      float *x = (float *)worker->values[k] + c * f->inner[k];
      sum += set_channel_target(f, norm, c, f->inner[k], x, weight);
    }
    sums[is_held_back_norm(k)] += sum / (double)norm->channels / n[is_held_back_norm(k)];
  }
  *loss = sums[0];
  *held = sums[1];
}

static float sign_of_number(float x) { return x > 0 ? 1.0F : x < 0 ? -1.0F : 0.0F; }

/* Adds the gradient of the total variation, the mean absolute difference of neighbouring pixels. */
static void add_variation_gradient(const fit_worker *worker) {
  const fitting *f = worker->fit;
  const laci_shape *shape = &f->how->shape;
  const bool last = f->how->channels_last;
  const int64_t height = shape->dims[last ? 1 : 2], width = shape->dims[last ? 2 : 3];
  const int64_t channels = shape->dims[last ? 3 : 1];
  const int64_t right = last ? channels : 1, down = width * right;
  const float weight = (float)(variation * f->factor / (double)(f->how->batch * f->image));
  for (int64_t n = 0; n < f->how->batch; n++) {
    for (int64_t c = 0; c < channels; c++) {
      const int64_t begin = n * f->image + c * (last ? 1 : height * width);
      for (int64_t y = 0; y < height; y++) {
        for (int64_t x = 0; x < width; x++) {
          const int64_t at = begin + y * down + x * right;
          for (int axis = 0; axis < 2; axis++) {
            if (axis ? y + 1 == height : x + 1 == width) continue;
            const int64_t next = at + (axis ? down : right);
            const float pull = weight * sign_of_number(worker->images[at] - worker->images[next]);
            worker->gradient[at] += pull;
            worker->gradient[next] -= pull;
          }
        }
      }
    }
  }
}

static void update_pixels(const fit_worker *worker, int step) {
  const fitting *f = worker->fit;
  const laci_shape *shape = &f->how->shape;
  const bool last = f->how->channels_last;
  const int64_t channels = shape->dims[last ? 3 : 1], plane = f->image / channels;
  const double scale = (double)(f->how->batch * f->image) / f->factor;
  const double bias1 = 1 - pow(first_decay, step + 1), bias2 = 1 - pow(second_decay, step + 1);
  for (int64_t at = 0; at < f->how->batch * f->image; at++) {
    const int64_t c = last ? at % channels : at / plane % channels;
    const double g = (double)worker->gradient[at] * scale;
    const double m = first_decay * (double)worker->first[at] + (1 - first_decay) * g;
    const double v = second_decay * (double)worker->second[at] + (1 - second_decay) * g * g;
    worker->first[at] = (float)m;
    worker->second[at] = (float)v;
    const double moved =
        (double)worker->images[at] - rate * (m / bias1) / (sqrt(v / bias2) + smallest);
    const double low = (double)f->how->low[c], high = (double)f->how->high[c];
    worker->images[at] = (float)(moved < low ? low : moved > high ? high : moved);
  }
}

static lac_status compute_targets(fit_worker *worker, double *loss, double *held) {
  const void *images[] = {worker->images};
  lac_status st = laci_engine_run(worker->forward, images, worker->values, &worker->err);
  if (!st) set_targets_of_norms(worker, loss, held);
  return st;
}

static lac_status fit_batch(fit_worker *worker, laci_fitted_images *to) {
  const fitting *f = worker->fit;
  const size_t bytes = (size_t)(f->how->batch * f->image) * sizeof(float);
  int n_inputs = 0;
  worker->inputs[n_inputs++] = worker->images;
  for (int k = 0; k < f->norms.n; k++)
    if (!is_held_back_norm(k)) worker->inputs[n_inputs++] = worker->values[k];
  memset(worker->first, 0, bytes);
  memset(worker->second, 0, bytes);
  for (int step = 0; step <= f->how->steps; step++) {
    void *gradient[] = {worker->gradient};
    double loss = 0, held = 0;
    if (laci_interrupted()) return laci_fail(&worker->err, LAC_INTERRUPTED, "interrupted");
    lac_status st = compute_targets(worker, &loss, &held);
    if (st) return st;
    if (step == 0) *to = (laci_fitted_images){.before = loss, .held_before = held};
    to->after = loss;
    to->held_after = held;
    if (step == f->how->steps) break;
    st = laci_engine_run(worker->backward, worker->inputs, gradient, &worker->err);
    if (st) return st;
    add_variation_gradient(worker);
    update_pixels(worker, step);
  }
  return LAC_OK;
}

static void fit_batches_of_workers(int64_t begin, int64_t end, void *context) {
  fitting *f = context;
  const int64_t n = f->how->n / f->how->batch;
  for (int64_t at = begin; at < end; at++) {
    fit_worker *worker = &f->workers[at];
    for (int64_t k = at; k < n && !worker->status; k += f->n_workers) {
      worker->images = f->images + k * f->how->batch * f->image;
      worker->status = fit_batch(worker, &f->batches[k]);
    }
  }
}

static lac_status fit_all_batches(fitting *f, laci_fitted_images *result, lac_error *err) {
  const int64_t n = f->how->n / f->how->batch;
  f->batches = laci_alloc((size_t)n, sizeof *f->batches);
  if (!f->batches) return laci_fail_memory(err, what);
  laci_pool_for(f->how->pool, f->n_workers, 1, fit_batches_of_workers, f);
  for (int at = 0; at < f->n_workers; at++) {
    if (!f->workers[at].status) continue;
    if (err) *err = f->workers[at].err;
    return f->workers[at].status;
  }
  for (int64_t k = 0; k < n; k++) {
    result->before += f->batches[k].before / (double)n;
    result->after += f->batches[k].after / (double)n;
    result->held_before += f->batches[k].held_before / (double)n;
    result->held_after += f->batches[k].held_after / (double)n;
  }
  return LAC_OK;
}

lac_status laci_fit_images(const laci_graph *graph, const laci_fit_images_options *options,
                           float *images, laci_fitted_images *result, lac_error *err) {
  fitting f = {.how = options, .images = images, .image = laci_shape_count(&options->shape)};
  const laci_weighted_graph from = {.graph = graph};
  const laci_calibration_samples samples = {.count = options->n, .shapes = &options->shape};
  *result = (laci_fitted_images){.n_norms = 0};
  lac_status st = laci_norms_find(graph, &f.norms, err);
  result->n_norms = f.norms.n;
  if (!st && f.norms.n > 0) {
    st = laci_network_create(&from, &samples, 0, options->batch, &f.network, err);
    if (!st && f.network->is_reduced)
      st = laci_fail(err, LAC_UNSUPPORTED, "%s: the network has branches", what);
    if (!st) st = build_forward_graph(&f, &f.forward, err);
    if (!st) st = measure_norm_sizes(&f, err);
    if (!st) st = build_backward_graph(&f, err);
    if (!st) st = create_all_workers(&f, err);
    if (!st) st = fit_all_batches(&f, result, err);
  }
  for (int at = 0; at < f.n_workers; at++) destroy_worker_engines(&f.workers[at]);
  laci_free(f.batches);
  laci_free(f.inner);
  laci_graph_destroy(f.forward);
  laci_graph_destroy(f.backward);
  laci_network_destroy(f.network);
  laci_norms_clear(&f.norms);
  return st;
}
