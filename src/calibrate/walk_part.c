/* SPDX-License-Identifier: Apache-2.0
 * Runs one part of the network for all batches in both networks. Several batches are run at the
 * same time, each on its own engine. Then the batches are added to the sums, one by one.
 *
 * Values in memory are read and written in place. Values in files are copied through buffers of the
 * worker. */
#include <string.h>

#include "base/budget.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "calibrate/residual_in.h"
#include "calibrate/workers_in.h"
#include "calibrate/walk_in.h"
#include "cpu/pool.h"

/* The part of the dense or of the pruned network that is run, and its engines. */
typedef struct stream_part {
  const laci_part *part;
  laci_part_engines workers;
  void **buffers; /* [n_workers, n_inputs + n_outputs] buffers for values that are stored in files;
                     NULL: the value is in memory */
  void **places;  /* [n_workers, n_inputs + n_outputs] addresses of the values of the worker's
                     batch */
} stream_part;

/* A run of a part in both networks, up to a stop's value, for batches of one shape set. */
typedef struct part_run {
  laci_walk_state *w;
  int value;
  int shape_set; /* index of the shape set that the batches' samples have (samples.h) */
  stream_part streams[LACI_STREAMS];
  const int64_t *batches; /* [n_workers] index of the batch that each worker (engine) runs */
  lac_status *status;
  lac_error *errors;
} part_run;

static int count_part_ports(const stream_part *s) { return s->part->n_inputs + s->part->n_outputs; }

static int value_of_port(const stream_part *s, int port) {
  const laci_part *part = s->part;
  return port < part->n_inputs ? part->inputs[port] : part->outputs[port - part->n_inputs];
}

lac_status laci_walk_report_progress(laci_walk_state *w, int64_t n, lac_error *err) {
  if (laci_interrupted()) return laci_fail(err, LAC_INTERRUPTED, "interrupted while calibrating");
  w->done += n;
  laci_progress("calibrating", w->done, w->total);
  return LAC_OK;
}

/* ---- Setting up ---- */

/* Allocates storage for an output of the part before the stop. If the value is read later, it is
 * stored for all batches. The stop's own value is otherwise stored only for the batches that are
 * held back. */
static lac_status alloc_output_storage(laci_walk_state *w, int stop, int stream, int value,
                                       lac_error *err) {
  size_t bytes = (size_t)laci_walk_largest_value_bytes(w, value);
  bool later = w->plan.last_stop[value] > stop;
  int64_t first = later ? 0 : laci_walk_first_held_back(w);
  int64_t n = later ? w->cut.n_batches : laci_walk_count_held_back(w);
  return laci_stored_batches_create(&w->allocator, bytes, first, n, &w->kept[stream][value], err);
}

/* Prepares the part of the dense or of the pruned network (`stream`) before the stop: allocates the
 * storage of its outputs and its buffers, and creates its engines. */
static lac_status prepare_part_of_stream(part_run *p, int stop, int stream, lac_error *err) {
  laci_walk_state *w = p->w;
  stream_part *one = &p->streams[stream];
  const laci_part *part = &w->plan.stops[stop].part[stream];
  lac_status st = LAC_OK;
  one->part = part;
  int n = count_part_ports(one);
  if (n == 0) return LAC_OK;
  for (int i = 0; i < part->n_outputs && !st; i++)
    if (!w->kept[stream][part->outputs[i]])
      st = alloc_output_storage(w, stop, stream, part->outputs[i], err);
  if (st) return st;
  one->buffers = laci_alloc((size_t)(w->n_workers * n), sizeof *one->buffers);
  one->places = laci_alloc((size_t)(w->n_workers * n), sizeof *one->places);
  if (!one->buffers || !one->places) return laci_fail_memory(err, "a part of the network");
  for (int port = 0; port < n; port++) {
    int value = value_of_port(one, port);
    const laci_stored_batches *kept = laci_walk_stored_batches(w, stream, value);
    if (laci_stored_batches_in_memory(kept) && kept->n == w->cut.n_batches) continue;
    for (int worker = 0; worker < w->n_workers; worker++) {
      void *buffer = laci_alloc((size_t)laci_walk_largest_value_bytes(w, value), 1);
      if (!buffer) return laci_fail_memory(err, "a part of the network");
      one->buffers[worker * n + port] = buffer;
    }
  }
  if (part->n_nodes == 0) return LAC_OK;
  laci_budget budget =
      w->options->budget ? *w->options->budget : laci_budget_with_limit(UINT64_MAX);
  one->workers =
      (laci_part_engines){.n = w->n_workers, .budget = &budget, .engine = w->samples->engine};
  return laci_part_engines_create(w->networks[p->shape_set], part, w->weights[stream],
                                  &one->workers, err);
}

static void clear_part_of_stream(const laci_walk_state *w, stream_part *one) {
  laci_part_engines_clear(&one->workers);
  for (int i = 0; one->buffers && i < w->n_workers * count_part_ports(one); i++)
    laci_free(one->buffers[i]);
  laci_free(one->buffers);
  laci_free(one->places);
}

/* ---- A batch ---- */

static bool is_batch_stored(const laci_stored_batches *kept, int64_t batch) {
  return batch >= kept->first && batch < kept->first + kept->n;
}

static lac_status run_part_on_batch(const part_run *p, int stream, int worker, int64_t batch,
                                    lac_error *err) {
  const stream_part *one = &p->streams[stream];
  int n = count_part_ports(one), n_inputs = one->part->n_inputs;
  void **buffers = one->buffers + worker * n, **places = one->places + worker * n;
  lac_status st = LAC_OK;
  if (n == 0) return LAC_OK;
  for (int port = 0; port < n && !st; port++) {
    const laci_stored_batches *kept =
        laci_walk_stored_batches(p->w, stream, value_of_port(one, port));
    places[port] = is_batch_stored(kept, batch) ? laci_stored_batches_address(kept, batch) : NULL;
    if (places[port]) continue;
    places[port] = buffers[port];
    if (port < n_inputs) st = laci_stored_batches_read(kept, batch, places[port], err);
  }
  if (st || one->part->n_nodes == 0) return st;
  st = laci_part_engines_run(&one->workers, worker, (const void *const *)places, places + n_inputs,
                             err);
  for (int port = n_inputs; port < n && !st; port++) {
    const laci_stored_batches *kept =
        laci_walk_stored_batches(p->w, stream, value_of_port(one, port));
    bool in_file = is_batch_stored(kept, batch) && !laci_stored_batches_address(kept, batch);
    if (in_file) st = laci_stored_batches_write(kept, batch, places[port], err);
  }
  return st;
}

static void run_batches_in_workers(int64_t begin, int64_t end, void *context) {
  const part_run *p = context;
  for (int64_t worker = begin; worker < end; worker++) {
    lac_status st = LAC_OK;
    for (int stream = 0; stream < LACI_STREAMS && !st; stream++)
      st = run_part_on_batch(p, stream, (int)worker, p->batches[worker], &p->errors[worker]);
    p->status[worker] = st;
  }
}

/* Returns the stop's value in a network, for the batch that the worker has just run. */
static const float *find_stop_value(const part_run *p, int stream, int worker) {
  if (!p->w->plan.differs[p->value]) stream = LACI_STREAM_DENSE;
  const stream_part *one = &p->streams[stream];
  int n = count_part_ports(one);
  for (int port = n - 1; port >= 0; port--) {
    if (value_of_port(one, port) == p->value) return one->places[worker * n + port];
  }
  return NULL;
}

static lac_status add_batch_to_residuals(const part_run *p, laci_stop_sums *sums,
                                         const float *pruned, int64_t batch, lac_error *err) {
  lac_status st = LAC_OK;
  for (int l = 0; l < sums->n_layers && sums->n_grams > 0 && !st; l++)
    st = laci_residual_add(&sums->residuals[l], p->w, &sums->grams[sums->which[l]], pruned, batch,
                           err);
  return st;
}

static lac_status run_and_sum_batches(part_run *p, int64_t n, laci_stop_sums *sums,
                                      lac_error *err) {
  laci_walk_state *w = p->w;
  const double began = laci_clock_seconds();
  memset(p->errors, 0, (size_t)n * sizeof *p->errors);
  laci_pool_for(w->options->pool, n, 1, run_batches_in_workers, p);
  for (int worker = 0; worker < n; worker++) {
    if (p->status[worker] && err) *err = p->errors[worker];
    if (p->status[worker]) return p->status[worker];
  }
  const double ran = laci_clock_seconds();
  w->times.runs += ran - began;
  for (int worker = 0; worker < n; worker++) {
    if (p->batches[worker] >= w->cut.n_fitted) continue;
    const float *dense = find_stop_value(p, LACI_STREAM_DENSE, worker);
    const float *pruned = find_stop_value(p, LACI_STREAM_PRUNED, worker);
    for (int m = 0; m < sums->n_grams; m++)
      laci_grams_add(&sums->grams[m], dense, pruned, w->options->pool);
    lac_status st = add_batch_to_residuals(p, sums, pruned, p->batches[worker], err);
    if (st) return st;
  }
  w->times.sums += laci_clock_seconds() - ran;
  return LAC_OK;
}

/* Runs the part for the batches p->batches [n], whose samples all have one shape set. */
static lac_status run_batches_of_shape_set(part_run *p, int stop, int64_t n, laci_stop_sums *sums,
                                           lac_error *err) {
  laci_walk_state *w = p->w;
  const int64_t *batches = p->batches;
  const double began = laci_clock_seconds();
  lac_status st = LAC_OK;
  for (int stream = 0; stream < LACI_STREAMS; stream++)
    p->streams[stream] = (stream_part){.part = &w->plan.stops[stop].part[stream]};
  for (int stream = 0; stream < LACI_STREAMS && !st; stream++)
    st = prepare_part_of_stream(p, stop, stream, err);
  w->times.runs += laci_clock_seconds() - began;
  for (int64_t at = 0; at < n && !st; at += w->n_workers) {
    const int64_t left = n - at, workers = left < w->n_workers ? left : w->n_workers;
    p->batches = batches + at;
    st = run_and_sum_batches(p, workers, sums, err);
    if (!st) st = laci_walk_report_progress(w, workers, err);
  }
  for (int stream = 0; stream < LACI_STREAMS; stream++)
    clear_part_of_stream(w, &p->streams[stream]);
  return st;
}

/* Prepares the sums for values of the sizes that this shape set gives. */
static lac_status set_grams_batch_sizes(laci_walk_state *w, int shape_set, laci_grams *grams,
                                        int n_grams, lac_error *err) {
  lac_status st = LAC_OK;
  for (int m = 0; m < n_grams && !st && w->n_shape_sets > 1; m++) {
    laci_unfold unfold;
    st =
        laci_walk_describe_layer_input(w, &w->plan.layers[grams[m].layer], shape_set, &unfold, err);
    if (!st) st = laci_grams_set_batch_sizes(&grams[m], &unfold, w->options->pool, err);
  }
  return st;
}

lac_status laci_walk_run_part(laci_walk_state *w, int stop, laci_stop_sums *sums, lac_error *err) {
  part_run p = {.w = w, .value = w->plan.stops[stop].value};
  int64_t *batches = laci_alloc((size_t)w->cut.n_batches + 1, sizeof *batches);
  p.status = laci_alloc((size_t)w->n_workers, sizeof *p.status);
  p.errors = laci_alloc((size_t)w->n_workers, sizeof *p.errors);
  lac_status st =
      p.status && p.errors && batches ? LAC_OK : laci_fail_memory(err, "a part of the network");
  for (p.shape_set = 0; p.shape_set < w->n_shape_sets && !st; p.shape_set++) {
    const int64_t n = laci_walk_list_batches(w, p.shape_set, 0, batches);
    p.batches = batches;
    if (n == 0) continue;
    st = set_grams_batch_sizes(w, p.shape_set, sums->grams, sums->n_grams, err);
    if (!st) st = run_batches_of_shape_set(&p, stop, n, sums, err);
  }
  laci_free(batches);
  laci_free(p.status);
  laci_free(p.errors);
  return st;
}

void laci_walk_free_unneeded_values(laci_walk_state *w, int stop) {
  for (int v = 0; v < w->network->graph.n_values; v++) {
    if (w->plan.last_stop[v] > stop) continue;
    for (int stream = 0; stream < LACI_STREAMS; stream++) {
      laci_stored_batches_destroy(w->kept[stream][v]);
      w->kept[stream][v] = NULL;
    }
  }
}

/* ---- The network's inputs ---- */

typedef struct inputs {
  laci_stored_batches **kept; /* [n_inputs] stored batches of each network input; NULL: no part
                                 reads the input */
  void **buffers;             /* [n_inputs] buffers for inputs that are stored in a file or not
                                 stored */
  void **places;              /* [n_inputs] addresses of the inputs of the current batch */
} inputs;

static lac_status alloc_input_storage(laci_walk_state *w, inputs *in, lac_error *err) {
  const laci_graph *graph = &w->network->graph;
  for (int i = 0; i < graph->n_inputs; i++) {
    int value = graph->inputs[i];
    size_t bytes = (size_t)laci_walk_largest_value_bytes(w, value);
    if (bytes == 0)
      return laci_fail(err, LAC_UNSUPPORTED, "input '%s' holds no numbers",
                       graph->values[value].name);
    if (w->plan.last_stop[value] >= 0 && w->network->graph.values[value].stored < 0) {
      laci_stored_batches **kept = &w->kept[LACI_STREAM_DENSE][value];
      lac_status st =
          laci_stored_batches_create(&w->allocator, bytes, 0, w->cut.n_batches, kept, err);
      if (st) return st;
      in->kept[i] = *kept;
    }
    if (in->kept[i] && laci_stored_batches_in_memory(in->kept[i])) continue;
    in->buffers[i] = laci_alloc(bytes, 1);
    if (!in->buffers[i]) return laci_fail_memory(err, "the network's inputs");
  }
  return LAC_OK;
}

static lac_status fetch_input_batch(laci_walk_state *w, const inputs *in, int64_t batch,
                                    lac_error *err) {
  int n = w->network->graph.n_inputs;
  for (int i = 0; i < n; i++) {
    void *place = in->kept[i] ? laci_stored_batches_address(in->kept[i], batch) : NULL;
    in->places[i] = place ? place : in->buffers[i];
  }
  const laci_calibration_samples *s = w->samples;
  lac_status st = s->fetch(s->context, batch * w->cut.batch, w->cut.batch, in->places, err);
  for (int i = 0; i < n && !st; i++) {
    if (in->kept[i] && !laci_stored_batches_in_memory(in->kept[i]))
      st = laci_stored_batches_write(in->kept[i], batch, in->buffers[i], err);
  }
  return st;
}

lac_status laci_walk_read_inputs(laci_walk_state *w, lac_error *err) {
  size_t n = (size_t)w->network->graph.n_inputs;
  inputs in = {.kept = laci_alloc(n + 1, sizeof *in.kept),
               .buffers = laci_alloc(n + 1, sizeof *in.buffers),
               .places = laci_alloc(n + 1, sizeof *in.places)};
  lac_status st =
      in.kept && in.buffers && in.places ? LAC_OK : laci_fail_memory(err, "the network's inputs");
  if (!st) st = alloc_input_storage(w, &in, err);
  for (int64_t batch = 0; batch < w->cut.n_batches && !st; batch++) {
    st = fetch_input_batch(w, &in, batch, err);
    if (!st) st = laci_walk_report_progress(w, 1, err);
  }
  for (size_t i = 0; in.buffers && i < n; i++) laci_free(in.buffers[i]);
  laci_free(in.kept);
  laci_free(in.buffers);
  laci_free(in.places);
  return st;
}
