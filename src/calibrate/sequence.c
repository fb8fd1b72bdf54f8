/* SPDX-License-Identifier: Apache-2.0
 * Cuts the network at its stops, as plan.c does for a calibration, and runs the parts. */
#include "calibrate/sequence.h"

#include <string.h>

#include "base/budget.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/min.h"
#include "calibrate/batch_allocator_in.h"
#include "calibrate/workers_in.h"
#include "cpu/pool.h"

enum { MOST_WORKERS = 16 };
static const char what[] = "running the network from layer to layer";
/* limit of the bytes of stored values that are kept in memory; others go to files */
static const uint64_t most_values = (uint64_t)1 << 30;

struct laci_sequence {
  laci_sequence_options how;
  int n_shape_sets;
  laci_network **networks; /* [n_shape_sets] the network, inferred for each shape set */
  int *stops;              /* [n_stops] the stops, as values of the networks */
  laci_part *parts;        /* [n_stops] the nodes that run before each stop */
  int *last_stop;          /* [n_values] index of the last stop whose part reads the value, or that
                              is the value; -1: none */
  laci_stored_batches **kept; /* [n_values] stored batches of each value; NULL: not stored */
  laci_batch_allocator allocator;
  int at; /* index of the last stop that was run */
};

/** A run of a part for the batches of one shape set. */
typedef struct part_run {
  laci_sequence *s;
  const laci_part *part;
  laci_part_engines engines;
  int n_workers, n_ports;
  void **buffers; /* [n_workers, n_ports] buffers for values that are not stored in memory; NULL:
                     the value is */
  void **places;  /* [n_workers, n_ports] addresses of the values of the worker's batch */
  const int64_t *batches; /* [n_workers] index of the batch that each worker runs */
  lac_status status[MOST_WORKERS];
  lac_error errors[MOST_WORKERS];
} part_run;

static lac_status fail_no_memory(lac_error *err) { return laci_fail_memory(err, what); }

static laci_network *first_network(const laci_sequence *s) { return s->networks[0]; }

/* Returns the bytes of a value in a batch, for the shape set in which it is largest. */
static uint64_t largest_value_bytes(const laci_sequence *s, int value) {
  uint64_t most = 0;
  for (int shape_set = 0; shape_set < s->n_shape_sets; shape_set++) {
    const uint64_t bytes = laci_network_value_bytes(s->networks[shape_set], value);
    if (bytes > most) most = bytes;
  }
  return most;
}

/* ---- Setting up ---- */

static lac_status create_networks(laci_sequence *s, const laci_weighted_graph *from,
                                  lac_error *err) {
  s->n_shape_sets = laci_calibration_count_shape_sets(s->how.samples);
  s->networks = laci_alloc((size_t)s->n_shape_sets, sizeof(laci_network *));
  lac_status st = s->networks ? LAC_OK : fail_no_memory(err);
  for (int shape_set = 0; shape_set < s->n_shape_sets && !st; shape_set++)
    st = laci_network_create(from, s->how.samples, shape_set, s->how.batch, &s->networks[shape_set],
                             err);
  return st;
}

static lac_status check_and_set_stops(laci_sequence *s, lac_error *err) {
  const laci_network *n = first_network(s);
  for (int k = 0; k < s->how.n_stops; k++) {
    const int value = n->alias ? n->alias[s->how.stops[k]] : s->how.stops[k];
    const char *reason = n->refusal[value];
    if (!reason && laci_network_value_bytes(n, value) == 0) reason = "its size depends on data";
    if (!reason && n->constant[value]) reason = "it does not depend on the network's inputs";
    if (reason)
      return laci_fail(err, LAC_UNSUPPORTED, "value '%s' cannot be computed: %s",
                       n->graph.values[value].name, reason);
    s->stops[k] = value;
  }
  return LAC_OK;
}

static void mark_computed_values(const laci_network *n, const laci_part *part, bool *there) {
  for (int i = 0; i < part->n_nodes; i++) {
    const laci_node *node = &n->graph.nodes[part->nodes[i]];
    for (int o = 0; o < node->n_outputs; o++) {
      const int v = node->outputs[o];
      if (v >= 0 && !n->constant[v]) there[v] = true;
    }
  }
}

/* Finds the nodes of each stop's part, and until which stop each value is needed. */
static lac_status plan_parts(laci_sequence *s, bool *there, lac_error *err) {
  laci_network *n = first_network(s);
  for (int v = 0; v < n->graph.n_values; v++) {
    there[v] = n->graph.values[v].is_input;
    s->last_stop[v] = -1;
  }
  for (int k = 0; k < s->how.n_stops; k++) {
    s->last_stop[s->stops[k]] = k;
    if (there[s->stops[k]]) continue;
    lac_status st = laci_part_find_nodes(n, there, 1, &s->stops[k], &s->parts[k], err);
    if (st) return st;
    const laci_part *part = &s->parts[k];
    for (int i = 0; i < part->n_inputs; i++) s->last_stop[part->inputs[i]] = k;
    mark_computed_values(n, part, there);
  }
  return LAC_OK;
}

/* Lists as outputs of each part its stop's value, and the values that later parts read. */
static lac_status list_part_outputs(laci_sequence *s, lac_error *err) {
  laci_network *n = first_network(s);
  for (int k = 0; k < s->how.n_stops; k++) {
    laci_part *part = &s->parts[k];
    if (part->n_nodes == 0) continue;
    int *outputs = laci_arena_alloc(&n->arena, (size_t)n->graph.n_values + 1, sizeof *outputs);
    if (!outputs) return fail_no_memory(err);
    part->n_outputs = 0;
    for (int i = 0; i < part->n_nodes; i++) {
      const laci_node *node = &n->graph.nodes[part->nodes[i]];
      for (int o = 0; o < node->n_outputs; o++) {
        const int v = node->outputs[o];
        if (v < 0 || n->constant[v]) continue;
        if (v == s->stops[k] || s->last_stop[v] > k) outputs[part->n_outputs++] = v;
      }
    }
    part->outputs = outputs;
  }
  return LAC_OK;
}

static lac_status plan(laci_sequence *s, lac_error *err) {
  const size_t n_values = (size_t)first_network(s)->graph.n_values + 1,
               n_stops = (size_t)s->how.n_stops + 1;
  bool *there = laci_alloc(n_values, sizeof *there);
  s->stops = laci_alloc(n_stops, sizeof *s->stops);
  s->parts = laci_alloc(n_stops, sizeof *s->parts);
  s->last_stop = laci_alloc(n_values, sizeof *s->last_stop);
  s->kept = laci_alloc(n_values, sizeof *s->kept);
  const bool ok = there && s->stops && s->parts && s->last_stop && s->kept;
  lac_status st = ok ? check_and_set_stops(s, err) : fail_no_memory(err);
  if (!st) st = plan_parts(s, there, err);
  if (!st) st = list_part_outputs(s, err);
  laci_free(there);
  return st;
}

static lac_status store_value(laci_sequence *s, int value, lac_error *err) {
  if (s->kept[value]) return LAC_OK;
  const size_t bytes = (size_t)largest_value_bytes(s, value);
  if (bytes == 0)
    return laci_fail(err, LAC_UNSUPPORTED, "value '%s' holds no numbers",
                     first_network(s)->graph.values[value].name);
  return laci_stored_batches_create(&s->allocator, bytes, 0, s->how.n_batches, &s->kept[value],
                                    err);
}

/* Fetches batch number `batch` into the inputs' storage; buffers: [n_inputs] memory for inputs that
 * are not stored in memory. */
static lac_status read_input_batch(laci_sequence *s, int64_t batch, void **buffers, void **places,
                                   lac_error *err) {
  const laci_graph *graph = &first_network(s)->graph;
  const laci_calibration_samples *samples = s->how.samples;
  for (int i = 0; i < graph->n_inputs; i++) {
    const laci_stored_batches *kept = s->kept[graph->inputs[i]];
    void *place = kept ? laci_stored_batches_address(kept, batch) : NULL;
    places[i] = place ? place : buffers[i];
  }
  lac_status st = samples->fetch(samples->context, s->how.firsts[batch], s->how.batch, places, err);
  for (int i = 0; i < graph->n_inputs && !st; i++) {
    const laci_stored_batches *kept = s->kept[graph->inputs[i]];
    if (kept && places[i] == buffers[i])
      st = laci_stored_batches_write(kept, batch, buffers[i], err);
  }
  return st;
}

static lac_status read_inputs(laci_sequence *s, lac_error *err) {
  const laci_graph *graph = &first_network(s)->graph;
  const size_t n = (size_t)graph->n_inputs + 1;
  void **buffers = laci_alloc(n, sizeof *buffers), **places = laci_alloc(n, sizeof *places);
  lac_status st = buffers && places ? LAC_OK : fail_no_memory(err);
  for (int i = 0; i < graph->n_inputs && !st; i++) {
    const int value = graph->inputs[i];
    if (s->last_stop[value] >= 0 && graph->values[value].stored < 0)
      st = store_value(s, value, err);
    if (st || (s->kept[value] && laci_stored_batches_in_memory(s->kept[value]))) continue;
    buffers[i] = laci_alloc((size_t)largest_value_bytes(s, value) + sizeof(int64_t), 1);
    if (!buffers[i]) st = fail_no_memory(err);
  }
  for (int64_t batch = 0; batch < s->how.n_batches && !st; batch++)
    st = read_input_batch(s, batch, buffers, places, err);
  for (int i = 0; buffers && i < graph->n_inputs; i++) laci_free(buffers[i]);
  laci_free(buffers);
  laci_free(places);
  return st;
}

lac_status laci_sequence_open(const laci_weighted_graph *from, const laci_sequence_options *options,
                              laci_sequence **sequence, lac_error *err) {
  laci_sequence *s = laci_alloc(1, sizeof *s);
  *sequence = NULL;
  if (!s) return fail_no_memory(err);
  const laci_budget *budget = options->budget;
  s->how = *options;
  s->at = -1;
  s->allocator.memory_limit = most_values;
  if (budget && budget->limit / 4 < most_values) s->allocator.memory_limit = budget->limit / 4;
  lac_status st = create_networks(s, from, err);
  if (!st) st = plan(s, err);
  if (!st) st = read_inputs(s, err);
  if (st) laci_sequence_close(s);
  else *sequence = s;
  return st;
}

void laci_sequence_close(laci_sequence *s) {
  if (!s) return;
  for (int v = 0; s->kept && v < first_network(s)->graph.n_values; v++)
    laci_stored_batches_destroy(s->kept[v]);
  for (int shape_set = 0; s->networks && shape_set < s->n_shape_sets; shape_set++)
    laci_network_destroy(s->networks[shape_set]);
  laci_batch_allocator_clear(&s->allocator);
  laci_free(s->networks);
  laci_free(s->stops);
  laci_free(s->parts);
  laci_free(s->last_stop);
  laci_free(s->kept);
  laci_free(s);
}

void laci_sequence_set_weight(laci_sequence *s, int stored, const uint8_t *bytes) {
  for (int shape_set = 0; shape_set < s->n_shape_sets; shape_set++)
    s->networks[shape_set]->weights[stored] = bytes;
}

/* ---- Running a part ---- */

static int value_of_port(const laci_part *part, int port) {
  return port < part->n_inputs ? part->inputs[port] : part->outputs[port - part->n_inputs];
}

static lac_status alloc_port_buffers(part_run *r, lac_error *err) {
  const size_t n = (size_t)(r->n_workers * r->n_ports) + 1;
  r->buffers = laci_alloc(n, sizeof *r->buffers);
  r->places = laci_alloc(n, sizeof *r->places);
  if (!r->buffers || !r->places) return fail_no_memory(err);
  for (int port = 0; port < r->n_ports; port++) {
    const int value = value_of_port(r->part, port);
    const laci_stored_batches *kept = r->s->kept[value];
    if (kept && laci_stored_batches_in_memory(kept)) continue;
    for (int worker = 0; worker < r->n_workers; worker++) {
      void *buffer = laci_alloc((size_t)largest_value_bytes(r->s, value) + 1, 1);
      if (!buffer) return fail_no_memory(err);
      r->buffers[worker * r->n_ports + port] = buffer;
    }
  }
  return LAC_OK;
}

/* Creates as many engines as memory allows, at most n. */
static lac_status create_engines(part_run *r, const laci_network *network, int64_t n,
                                 lac_error *err) {
  const laci_budget *limit = r->s->how.budget;
  int64_t wanted = laci_min(laci_min(laci_pool_threads(r->s->how.pool), MOST_WORKERS), n);
  if (r->part->n_nodes == 0) wanted = 1;
  for (r->n_workers = wanted < 1 ? 1 : (int)wanted;; r->n_workers = 1) {
    laci_budget budget = limit ? *limit : laci_budget_with_limit(UINT64_MAX);
    r->engines = (laci_part_engines){
        .n = r->n_workers, .budget = &budget, .engine = r->s->how.samples->engine};
    if (r->part->n_nodes == 0) return LAC_OK;
    lac_status st = laci_part_engines_create(network, r->part, network->weights, &r->engines, err);
    if (st != LAC_MEMORY_LIMIT || r->n_workers == 1) return st;
  }
}

static void clear_run(part_run *r) {
  laci_part_engines_clear(&r->engines);
  for (int i = 0; r->buffers && i < r->n_workers * r->n_ports; i++) laci_free(r->buffers[i]);
  laci_free(r->buffers);
  laci_free(r->places);
  r->buffers = r->places = NULL;
}

static lac_status run_worker(part_run *r, int worker, lac_error *err) {
  const laci_part *part = r->part;
  const int64_t batch = r->batches[worker];
  void **buffers = r->buffers + worker * r->n_ports, **places = r->places + worker * r->n_ports;
  lac_status st = LAC_OK;
  for (int port = 0; port < r->n_ports && !st; port++) {
    const laci_stored_batches *kept = r->s->kept[value_of_port(part, port)];
    places[port] = kept ? laci_stored_batches_address(kept, batch) : NULL;
    if (places[port]) continue;
    places[port] = buffers[port];
    if (port < part->n_inputs) st = laci_stored_batches_read(kept, batch, places[port], err);
  }
  if (st || part->n_nodes == 0) return st;
  st = laci_part_engines_run(&r->engines, worker, (const void *const *)places,
                             places + part->n_inputs, err);
  for (int port = part->n_inputs; port < r->n_ports && !st; port++) {
    const laci_stored_batches *kept = r->s->kept[value_of_port(part, port)];
    if (kept && places[port] == buffers[port])
      st = laci_stored_batches_write(kept, batch, places[port], err);
  }
  return st;
}

static void run_workers(int64_t begin, int64_t end, void *context) {
  part_run *r = context;
  for (int64_t worker = begin; worker < end; worker++)
    r->status[worker] = run_worker(r, (int)worker, &r->errors[worker]);
}

/** The value that the caller looks at, and the caller's function. */
typedef struct view {
  int value;
  laci_sequence_on_batch *on_batch;
  void *context;
} view;

static lac_status pass_batches(const part_run *r, const laci_network *network, int64_t n,
                               const view *seen, lac_error *err) {
  int port = r->n_ports - 1;
  while (value_of_port(r->part, port) != seen->value) port--;
  lac_status st = LAC_OK;
  for (int worker = 0; worker < n && !st; worker++) {
    const laci_sequence_value value = {.batch = r->batches[worker],
                                       .shape = &network->graph.values[seen->value].type.shape,
                                       .elements = r->places[worker * r->n_ports + port]};
    st = seen->on_batch(seen->context, &value, err);
  }
  return st;
}

static lac_status run_batches(part_run *r, const laci_network *network, const int64_t *batches,
                              int64_t n_batches, const view *seen, lac_error *err) {
  lac_status st = create_engines(r, network, n_batches, err);
  if (!st) st = alloc_port_buffers(r, err);
  for (int64_t done = 0; done < n_batches && !st; done += r->n_workers) {
    const int64_t n = laci_min(n_batches - done, r->n_workers);
    if (laci_interrupted()) st = laci_fail(err, LAC_INTERRUPTED, "interrupted while %s", what);
    if (st) break;
    r->batches = batches + done;
    memset(r->errors, 0, sizeof r->errors);
    laci_pool_for(r->s->how.pool, n, 1, run_workers, r);
    for (int64_t worker = 0; worker < n && !st; worker++) {
      st = r->status[worker];
      if (st && err) *err = r->errors[worker];
    }
    if (!st && seen->on_batch) st = pass_batches(r, network, n, seen, err);
  }
  return st;
}

/* Runs the part for all batches, shape set after shape set. */
static lac_status run_part(laci_sequence *s, const laci_part *part, const view *seen,
                           lac_error *err) {
  int64_t *batches = laci_alloc((size_t)s->how.n_batches + 1, sizeof *batches);
  lac_status st = batches ? LAC_OK : fail_no_memory(err);
  for (int shape_set = 0; shape_set < s->n_shape_sets && !st; shape_set++) {
    int64_t n = 0;
    for (int64_t batch = 0; batch < s->how.n_batches; batch++)
      if (laci_calibration_shape_set_of(s->how.samples, s->how.firsts[batch]) == shape_set)
        batches[n++] = batch;
    part_run r = {.s = s, .part = part, .n_ports = part->n_inputs + part->n_outputs};
    if (n > 0) st = run_batches(&r, s->networks[shape_set], batches, n, seen, err);
    clear_run(&r);
  }
  laci_free(batches);
  return st;
}

lac_status laci_sequence_visit(laci_sequence *s, laci_sequence_on_batch *on_batch, void *context,
                               lac_error *err) {
  const view seen = {s->stops[s->at], on_batch, context};
  const laci_part alone = {.product_only = -1, .n_inputs = 1, .inputs = &s->stops[s->at]};
  return run_part(s, &alone, &seen, err);
}

lac_status laci_sequence_advance(laci_sequence *s, int stop, laci_sequence_on_batch *on_batch,
                                 void *context, lac_error *err) {
  const view seen = {s->stops[stop], on_batch, context};
  lac_status st = LAC_OK;
  for (int v = 0; v < first_network(s)->graph.n_values; v++) {
    if (!s->kept[v] || s->last_stop[v] >= stop) continue;
    laci_stored_batches_destroy(s->kept[v]);
    s->kept[v] = NULL;
  }
  s->at = stop;
  for (int i = 0; i < s->parts[stop].n_outputs && !st; i++)
    st = store_value(s, s->parts[stop].outputs[i], err);
  if (st) return st;
  if (s->parts[stop].n_nodes > 0) return run_part(s, &s->parts[stop], &seen, err);
  return on_batch ? laci_sequence_visit(s, on_batch, context, err) : LAC_OK;
}

lac_status laci_sequence_read_stop(const laci_sequence *s, int stop, int64_t batch, float *buffer,
                                   const float **elements, lac_error *err) {
  const laci_stored_batches *kept = s->kept[s->stops[stop]];
  if (!kept)
    return laci_fail(err, LAC_UNSUPPORTED, "value '%s' is stored no longer",
                     first_network(s)->graph.values[s->stops[stop]].name);
  *elements = laci_stored_batches_address(kept, batch);
  if (*elements) return LAC_OK;
  *elements = buffer;
  return laci_stored_batches_read(kept, batch, buffer, err);
}

lac_status laci_sequence_look_ahead(laci_sequence *s, int value, laci_sequence_on_batch *on_batch,
                                    void *context, lac_error *err) {
  laci_network *n = first_network(s);
  bool *there = laci_alloc((size_t)n->graph.n_values + 1, sizeof *there);
  const view seen = {n->alias ? n->alias[value] : value, on_batch, context};
  laci_part part = {.product_only = -1};
  if (!there) return fail_no_memory(err);
  there[s->stops[s->at]] = true;
  lac_status st = laci_part_find_nodes(n, there, 1, &seen.value, &part, err);
  laci_free(there);
  for (int i = 0; i < part.n_nodes && !st; i++) {
    const laci_node *node = &n->graph.nodes[part.nodes[i]];
    for (int k = 0; k < node->n_inputs && !st; k++) {
      const int v = node->inputs[k];
      if (v < 0 || v == s->stops[s->at] || n->graph.values[v].stored >= 0) continue;
      if (n->graph.values[v].producer < 0)
        st = laci_fail(err, LAC_UNSUPPORTED, "value '%s' depends on more than one value",
                       n->graph.values[seen.value].name);
    }
  }
  return st ? st : run_part(s, &part, &seen, err);
}
