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

enum { MOST_LANES = 16 };

/** An engine of one thread, and the batch that it runs. Several lanes run different batches at the
 * same time. */
typedef struct observe_lane {
  laci_observation *observation;
  int number;
  int64_t first; /* index of the first sample of the batch that the lane runs */
  laci_engine *engine;
  void **in; /* [n_in] buffers of the network's inputs */
  int n_in;
  const void **ports; /* inputs of the engine, each one of the buffers `in` */
  void **out;
  lac_status status;
  lac_error err;
} observe_lane;

struct laci_observation {
  laci_observe_options how;
  const laci_weighted_graph *from;
  int shape_set; /* index of the shape set of the samples that the lanes run */
  laci_network *network;
  laci_graph *part; /* the network's graph without inputs that all samples share; NULL: there are
                       none */
  int *values;      /* [n_values] the observed values that exist in the graph that is run */
  int n_values;
  int *place; /* for each value of the graph that is run, its index in how.values; -1: it is not
                 observed */
  observe_lane *lanes;
  int n_lanes, most_lanes;
};

static lac_status show_value(void *context, int value, const laci_engine_port *port,
                             const void *content, lac_error *err) {
  observe_lane *lane = context;
  const laci_observation *o = lane->observation;
  if (value < 0 || o->place[value] < 0) return LAC_OK;
  if (port->type.dtype != LAC_DTYPE_F32)
    return laci_fail(err, LAC_UNSUPPORTED, "value '%s' is not of floats", port->name);
  const laci_observed seen = {.lane = lane->number,
                              .place = o->place[value],
                              .first = lane->first,
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

static lac_status create_lane_engine(laci_observation *o, observe_lane *lane, laci_budget *budget,
                                     lac_error *err) {
  const laci_graph *graph = graph_that_runs(o);
  const laci_engine_observer observer = {
      .values = o->values, .n_values = o->n_values, .on_value = show_value, .context = lane};
  laci_engine_options options = {
      .engine = o->how.samples->engine,
      .threads = 1,
      .dense_only = true,
      .finite = LACI_FINITE_ASSUMED, /* the caller's function `on_value` checks that values are
                                        finite */
      .budget = budget,
      .observer = &observer};
  const laci_engine_port *ports;
  lane->observation = o;
  lane->number = o->n_lanes;
  lac_status st = laci_engine_create(graph, &options, &lane->engine, err);
  if (st) return st;
  int n_in = laci_engine_inputs(lane->engine, &ports);
  lane->n_in = o->network->graph.n_inputs;
  lane->in = laci_alloc((size_t)lane->n_in + 1, sizeof *lane->in);
  lane->ports = laci_alloc((size_t)n_in + 1, sizeof *lane->ports);
  bool ok = lane->in && lane->ports;
  for (int i = 0; i < lane->n_in && ok; i++) ok = (lane->in[i] = alloc_input(o, i)) != NULL;
  for (int i = 0; i < n_in && ok; i++)
    lane->ports[i] = lane->in[find_input_by_name(o, ports[i].name)];
  int n_out = laci_engine_outputs(lane->engine, &ports);
  lane->out = ok ? laci_alloc((size_t)n_out + 1, sizeof *lane->out) : NULL;
  ok = ok && lane->out;
  for (int i = 0; i < n_out && ok; i++) ok = (lane->out[i] = alloc_port_buffer(&ports[i])) != NULL;
  return ok ? LAC_OK : laci_fail_memory(err, o->how.what);
}

static void clear_lane(observe_lane *lane) {
  const laci_engine_port *ports;
  int n_out = lane->engine ? laci_engine_outputs(lane->engine, &ports) : 0;
  for (int i = 0; lane->in && i < lane->n_in; i++) laci_free(lane->in[i]);
  for (int i = 0; lane->out && i < n_out; i++) laci_free(lane->out[i]);
  laci_free(lane->in);
  laci_free((void *)lane->ports);
  laci_free(lane->out);
  laci_engine_destroy(lane->engine);
}

/* Creates the lanes (engines). The first one must fit in memory; more are added while memory
 * allows. */
static lac_status create_lanes(laci_observation *o, lac_error *err) {
  laci_budget budget = o->how.budget ? *o->how.budget : laci_budget_with_limit(UINT64_MAX);
  for (; o->n_lanes < o->most_lanes; o->n_lanes++) {
    lac_error why = {0};
    lac_status st = create_lane_engine(o, &o->lanes[o->n_lanes], &budget, &why);
    if (!st) continue;
    clear_lane(&o->lanes[o->n_lanes]);
    o->lanes[o->n_lanes] = (observe_lane){0};
    bool enough = o->n_lanes > 0 && (st == LAC_MEMORY_LIMIT || st == LAC_NO_MEMORY);
    if (!enough && err) *err = why;
    return enough ? LAC_OK : st;
  }
  return LAC_OK;
}

static void clear_shape_set(laci_observation *o) {
  for (int lane = 0; lane < o->n_lanes; lane++) {
    clear_lane(&o->lanes[lane]);
    o->lanes[lane] = (observe_lane){0};
  }
  o->n_lanes = 0;
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
  return st ? st : create_lanes(o, err);
}

lac_status laci_observe_open(const laci_weighted_graph *from, const laci_observe_options *options,
                             laci_observation **observation, lac_error *err) {
  laci_observation *o = laci_alloc(1, sizeof *o);
  *observation = NULL;
  if (!o) return laci_fail_memory(err, options->what);
  o->how = *options;
  o->from = from;
  int most = laci_pool_threads(options->pool);
  if (most > MOST_LANES) most = MOST_LANES;
  if (most > options->n_batches) most = (int)options->n_batches;
  o->most_lanes = most < 1 ? 1 : most;
  o->lanes = laci_alloc((size_t)o->most_lanes, sizeof *o->lanes);
  lac_status st = o->lanes ? prepare_shape_set(o, 0, err) : laci_fail_memory(err, options->what);
  if (st) laci_observe_close(o);
  else *observation = o;
  return st;
}

void laci_observe_close(laci_observation *o) {
  if (!o) return;
  clear_shape_set(o);
  laci_free(o->lanes);
  laci_free(o);
}

int laci_observe_max_parallel_batches(const laci_observation *o) { return o->most_lanes; }

static void run_lane_batches(int64_t begin, int64_t end, void *context) {
  const laci_observation *o = context;
  for (int64_t at = begin; at < end; at++) {
    observe_lane *lane = &o->lanes[at];
    lane->status = laci_engine_run(lane->engine, lane->ports, lane->out, &lane->err);
  }
}

static lac_status run_batches_of_shape_set(laci_observation *o, const int64_t *firsts,
                                           int64_t n_batches, lac_error *err) {
  const laci_observe_options *how = &o->how;
  for (int64_t done = 0; done < n_batches; done += o->n_lanes) {
    if (laci_interrupted())
      return laci_fail(err, LAC_INTERRUPTED, "interrupted while %s were measured", how->what);
    int64_t n = n_batches - done < o->n_lanes ? n_batches - done : o->n_lanes;
    for (int64_t at = 0; at < n; at++) {
      observe_lane *lane = &o->lanes[at];
      lane->first = firsts[done + at];
      lac_status st =
          how->samples->fetch(how->samples->context, lane->first, how->batch, lane->in, err);
      if (st) return st;
    }
    laci_pool_for(how->pool, n, 1, run_lane_batches, o);
    for (int64_t at = 0; at < n; at++) {
      if (o->lanes[at].status && err) *err = o->lanes[at].err;
      if (o->lanes[at].status) return o->lanes[at].status;
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
