/* SPDX-License-Identifier: Apache-2.0 */
#include "calibrate/observe_in.h"

#include <string.h>

#include "base/budget.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "calibrate/network_in.h"
#include "cpu/pool.h"
#include "engine/engine.h"

enum { MOST_WORKERS = 16 };

/** An engine of one thread, and the batch that it runs. Several workers run different batches at
 * the same time. */
typedef struct observe_worker {
  laci_observation *observation;
  int number;
  int64_t first; /* index of the first sample of the batch that the worker runs */
  laci_engine *engine;
  void **in; /* [n_in] buffers of the network's inputs */
  int n_in;
  const void **ports; /* inputs of the engine, each one of the buffers `in` */
  void **out;
  lac_status status;
  lac_error err;
} observe_worker;

struct laci_observation {
  laci_observe_options how;
  const laci_weighted_graph *from;
  int shape_set; /* index of the shape set of the samples that the workers run */
  laci_network *network;
  laci_graph *part; /* the network's graph without inputs that all samples share; NULL: there are
                       none */
  int *values;      /* [n_values] the observed values that exist in the graph that is run */
  int n_values;
  int *place; /* for each value of the graph that is run, its index in how.values; -1: it is not
                 observed */
  observe_worker *workers;
  int n_workers, most_workers;
};

static lac_status pass_value_to_caller(void *context, int value, const laci_engine_port *port,
                                       const void *content, lac_error *err) {
  observe_worker *worker = context;
  const laci_observation *o = worker->observation;
  if (value < 0 || o->place[value] < 0) return LAC_OK;
  if (port->type.dtype != LAC_DTYPE_F32)
    return laci_fail(err, LAC_UNSUPPORTED, "value '%s' is not of floats", port->name);
  const laci_observed seen = {.worker = worker->number,
                              .place = o->place[value],
                              .first = worker->first,
                              .shape = &port->type.shape,
                              .elements = content,
                              .n = laci_shape_count(&port->type.shape)};
  return o->how.on_value(o->how.context, &seen, err);
}

static const laci_graph *graph_that_runs(const laci_observation *o) {
  return o->part ? o->part : &o->network->graph;
}

static void *alloc_input(const laci_observation *o, int input) {
  const int value = o->network->graph.inputs[input];
  return laci_alloc((size_t)laci_network_value_bytes(o->network, value) + sizeof(int64_t), 1);
}

/* Returns the index of the network's input of that name. */
static int find_input_by_name(const laci_observation *o, const char *name) {
  const laci_graph *graph = &o->network->graph;
  for (int i = 0; i < graph->n_inputs; i++)
    if (strcmp(graph->values[graph->inputs[i]].name, name) == 0) return i;
  return 0;
}

static void *alloc_port_buffer(const laci_engine_port *port) {
  return laci_alloc(port->size_bytes + 1, 1);
}

static lac_status create_worker_engine(laci_observation *o, observe_worker *worker,
                                       laci_budget *budget, lac_error *err) {
  const laci_graph *graph = graph_that_runs(o);
  const laci_engine_observer observer = {.values = o->values,
                                         .n_values = o->n_values,
                                         .on_value = pass_value_to_caller,
                                         .context = worker};
  laci_engine_options options = {
      .engine = o->how.samples->engine,
      .threads = 1,
      .dense_only = true,
      .finite = LACI_FINITE_ASSUMED, /* the caller's function `on_value` checks that values are
                                        finite */
      .budget = budget,
      .observer = &observer};
  const laci_engine_port *ports;
  worker->observation = o;
  worker->number = o->n_workers;
  lac_status st = laci_engine_create(graph, &options, &worker->engine, err);
  if (st) return st;
  int n_in = laci_engine_inputs(worker->engine, &ports);
  worker->n_in = o->network->graph.n_inputs;
  worker->in = laci_alloc((size_t)worker->n_in + 1, sizeof *worker->in);
  worker->ports = laci_alloc((size_t)n_in + 1, sizeof *worker->ports);
  bool ok = worker->in && worker->ports;
  for (int i = 0; i < worker->n_in && ok; i++) ok = (worker->in[i] = alloc_input(o, i)) != NULL;
  for (int i = 0; i < n_in && ok; i++)
    worker->ports[i] = worker->in[find_input_by_name(o, ports[i].name)];
  int n_out = laci_engine_outputs(worker->engine, &ports);
  worker->out = ok ? laci_alloc((size_t)n_out + 1, sizeof *worker->out) : NULL;
  ok = ok && worker->out;
  for (int i = 0; i < n_out && ok; i++)
    ok = (worker->out[i] = alloc_port_buffer(&ports[i])) != NULL;
  return ok ? LAC_OK : laci_fail_memory(err, o->how.what);
}

static void clear_worker(observe_worker *worker) {
  const laci_engine_port *ports;
  int n_out = worker->engine ? laci_engine_outputs(worker->engine, &ports) : 0;
  for (int i = 0; worker->in && i < worker->n_in; i++) laci_free(worker->in[i]);
  for (int i = 0; worker->out && i < n_out; i++) laci_free(worker->out[i]);
  laci_free(worker->in);
  laci_free((void *)worker->ports);
  laci_free(worker->out);
  laci_engine_destroy(worker->engine);
}

/* Creates the workers (engines). The first one must fit in memory; more are added while memory
 * allows. */
static lac_status create_workers(laci_observation *o, lac_error *err) {
  laci_budget budget = o->how.budget ? *o->how.budget : laci_budget_with_limit(UINT64_MAX);
  for (; o->n_workers < o->most_workers; o->n_workers++) {
    lac_error why = {0};
    lac_status st = create_worker_engine(o, &o->workers[o->n_workers], &budget, &why);
    if (!st) continue;
    clear_worker(&o->workers[o->n_workers]);
    o->workers[o->n_workers] = (observe_worker){0};
    bool enough = o->n_workers > 0 && (st == LAC_MEMORY_LIMIT || st == LAC_NO_MEMORY);
    if (!enough && err) *err = why;
    return enough ? LAC_OK : st;
  }
  return LAC_OK;
}

static void clear_shape_set(laci_observation *o) {
  for (int worker = 0; worker < o->n_workers; worker++) {
    clear_worker(&o->workers[worker]);
    o->workers[worker] = (observe_worker){0};
  }
  o->n_workers = 0;
  laci_free(o->place);
  laci_free(o->values);
  laci_graph_destroy(o->part);
  laci_network_destroy(o->network);
  o->place = o->values = NULL;
  o->part = NULL;
  o->network = NULL;
}

/* Builds the graph that computes the network's outputs, without the inputs that all samples
 * share. */
static lac_status build_part_without_constants(laci_observation *o, lac_error *err) {
  laci_network *n = o->network;
  laci_graph *graph = &n->graph;
  laci_part part;
  bool *there = laci_alloc((size_t)graph->n_values + 1, sizeof *there);
  lac_status st = there ? LAC_OK : laci_fail_memory(err, o->how.what);
  for (int v = 0; !st && v < graph->n_values; v++) there[v] = graph->values[v].is_input;
  if (!st) st = laci_part_find_nodes(n, there, graph->n_outputs, graph->outputs, &part, err);
  if (!st) st = laci_part_build_graph(n, &part, n->weights, &o->part, err);
  laci_free(there);
  return st;
}

/* Finds the values that the caller wants to observe in the graph that is run. */
static lac_status find_observed_values(laci_observation *o, lac_error *err) {
  const laci_graph *graph = graph_that_runs(o);
  o->place = laci_alloc((size_t)graph->n_values + 1, sizeof *o->place);
  o->values = laci_alloc((size_t)o->how.n_values + 1, sizeof *o->values);
  if (!o->place || !o->values) return laci_fail_memory(err, o->how.what);
  for (int v = 0; v < graph->n_values; v++) o->place[v] = -1;
  o->n_values = 0;
  for (int k = 0; k < o->how.n_values; k++) {
    int value = o->how.values[k];
    if (o->network->alias) value = o->network->alias[value];
    if (o->part) value = laci_graph_find_value(graph, o->network->graph.values[value].name);
    if (value < 0) continue; /* an output that no node needs is not in this graph */
    o->place[value] = k;
    o->values[o->n_values++] = value;
  }
  return LAC_OK;
}

static lac_status prepare_shape_set(laci_observation *o, int shape_set, lac_error *err) {
  clear_shape_set(o);
  o->shape_set = shape_set;
  lac_status st =
      laci_network_create(o->from, o->how.samples, shape_set, o->how.batch, &o->network, err);
  if (!st && o->network->is_reduced) st = build_part_without_constants(o, err);
  if (!st) st = find_observed_values(o, err);
  return st ? st : create_workers(o, err);
}

lac_status laci_observe_open(const laci_weighted_graph *from, const laci_observe_options *options,
                             laci_observation **observation, lac_error *err) {
  laci_observation *o = laci_alloc(1, sizeof *o);
  *observation = NULL;
  if (!o) return laci_fail_memory(err, options->what);
  o->how = *options;
  o->from = from;
  int most = laci_pool_threads(options->pool);
  if (most > MOST_WORKERS) most = MOST_WORKERS;
  if (most > options->n_batches) most = (int)options->n_batches;
  o->most_workers = most < 1 ? 1 : most;
  o->workers = laci_alloc((size_t)o->most_workers, sizeof *o->workers);
  lac_status st = o->workers ? prepare_shape_set(o, 0, err) : laci_fail_memory(err, options->what);
  if (st) laci_observe_close(o);
  else *observation = o;
  return st;
}

void laci_observe_close(laci_observation *o) {
  if (!o) return;
  clear_shape_set(o);
  laci_free(o->workers);
  laci_free(o);
}

int laci_observe_max_parallel_batches(const laci_observation *o) { return o->most_workers; }

static void run_worker_batches(int64_t begin, int64_t end, void *context) {
  const laci_observation *o = context;
  for (int64_t at = begin; at < end; at++) {
    observe_worker *worker = &o->workers[at];
    worker->status = laci_engine_run(worker->engine, worker->ports, worker->out, &worker->err);
  }
}

static lac_status run_batches_of_shape_set(laci_observation *o, const int64_t *firsts,
                                           int64_t n_batches, lac_error *err) {
  const laci_observe_options *how = &o->how;
  for (int64_t done = 0; done < n_batches; done += o->n_workers) {
    if (laci_interrupted())
      return laci_fail(err, LAC_INTERRUPTED, "interrupted while %s were measured", how->what);
    int64_t n = n_batches - done < o->n_workers ? n_batches - done : o->n_workers;
    for (int64_t at = 0; at < n; at++) {
      observe_worker *worker = &o->workers[at];
      worker->first = firsts[done + at];
      lac_status st =
          how->samples->fetch(how->samples->context, worker->first, how->batch, worker->in, err);
      if (st) return st;
    }
    laci_pool_for(how->pool, n, 1, run_worker_batches, o);
    for (int64_t at = 0; at < n; at++) {
      if (o->workers[at].status && err) *err = o->workers[at].err;
      if (o->workers[at].status) return o->workers[at].status;
    }
  }
  return LAC_OK;
}

lac_status laci_observe_run(laci_observation *o, lac_error *err) {
  const laci_observe_options *how = &o->how;
  int64_t *firsts = laci_alloc((size_t)how->n_batches + 1, sizeof *firsts);
  lac_status st = firsts ? LAC_OK : laci_fail_memory(err, how->what);
  for (int shape_set = 0; shape_set < laci_calibration_count_shape_sets(how->samples) && !st;
       shape_set++) {
    int64_t n = 0;
    for (int64_t batch = 0; batch < how->n_batches; batch++) {
      const int64_t first = batch * how->batch;
      if (laci_calibration_shape_set_of(how->samples, first) == shape_set) firsts[n++] = first;
    }
    if (n == 0) continue;
    if (shape_set != o->shape_set) st = prepare_shape_set(o, shape_set, err);
    if (!st) st = run_batches_of_shape_set(o, firsts, n, err);
  }
  laci_free(firsts);
  return st;
}
