/* SPDX-License-Identifier: Apache-2.0 */
#include "calibrate/observe_in.h"

#include "base/budget.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "calibrate/network_in.h"
#include "cpu/pool.h"
#include "engine/engine.h"

enum { MOST_LANES = 16 };

typedef struct observe_lane {
  laci_observation *observation;
  int number;
  int64_t first; /* the first sample of its batch */
  laci_engine *engine;
  void **in, **out;
  lac_status status;
  lac_error err;
} observe_lane;

struct laci_observation {
  laci_observe_options how;
  laci_network *network;
  int *place; /* [graph->n_values] index in the list of values; -1: not wanted */
  observe_lane *lanes;
  int n_lanes;
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
  return o->how.see(o->how.context, &seen, err);
}

static void *alloc_port_buffer(const laci_engine_port *port) {
  return laci_alloc(port->size_bytes + 1, 1);
}

static lac_status open_lane(laci_observation *o, observe_lane *lane, laci_budget *budget,
                            lac_error *err) {
  const laci_engine_observer observer = {
      .values = o->how.values, .n_values = o->how.n_values, .see = show_value, .context = lane};
  laci_engine_options options = {
      .threads = 1,
      .dense_only = true,
      .finite = LACI_FINITE_ASSUMED, /* whoever sees values checks them */
      .budget = budget,
      .observer = &observer};
  const laci_engine_port *ports;
  lane->observation = o;
  lane->number = o->n_lanes;
  lac_status st = laci_engine_create(&o->network->graph, &options, &lane->engine, err);
  if (st) return st;
  int n_in = laci_engine_inputs(lane->engine, &ports);
  lane->in = laci_alloc((size_t)n_in + 1, sizeof *lane->in);
  bool ok = lane->in != NULL;
  for (int i = 0; i < n_in && ok; i++) ok = (lane->in[i] = alloc_port_buffer(&ports[i])) != NULL;
  int n_out = laci_engine_outputs(lane->engine, &ports);
  lane->out = ok ? laci_alloc((size_t)n_out + 1, sizeof *lane->out) : NULL;
  ok = ok && lane->out;
  for (int i = 0; i < n_out && ok; i++) ok = (lane->out[i] = alloc_port_buffer(&ports[i])) != NULL;
  return ok ? LAC_OK : laci_fail_memory(err, o->how.what);
}

static void close_lane(observe_lane *lane) {
  const laci_engine_port *ports;
  int n_in = lane->engine ? laci_engine_inputs(lane->engine, &ports) : 0;
  int n_out = lane->engine ? laci_engine_outputs(lane->engine, &ports) : 0;
  for (int i = 0; lane->in && i < n_in; i++) laci_free(lane->in[i]);
  for (int i = 0; lane->out && i < n_out; i++) laci_free(lane->out[i]);
  laci_free(lane->in);
  laci_free(lane->out);
  laci_engine_destroy(lane->engine);
}

/* Opens the lanes. The first one must fit in memory; more are added while memory allows. */
static lac_status open_lanes(laci_observation *o, lac_error *err) {
  laci_budget budget = o->how.budget ? *o->how.budget : laci_budget_with_limit(UINT64_MAX);
  int most = laci_pool_threads(o->how.pool);
  if (most > MOST_LANES) most = MOST_LANES;
  if (most > o->how.n_batches) most = (int)o->how.n_batches;
  if (most < 1) most = 1;
  o->lanes = laci_alloc((size_t)most, sizeof *o->lanes);
  if (!o->lanes) return laci_fail_memory(err, o->how.what);
  for (; o->n_lanes < most; o->n_lanes++) {
    lac_error why = {0};
    lac_status st = open_lane(o, &o->lanes[o->n_lanes], &budget, &why);
    if (!st) continue;
    close_lane(&o->lanes[o->n_lanes]);
    o->lanes[o->n_lanes] = (observe_lane){0};
    bool enough = o->n_lanes > 0 && (st == LAC_MEMORY_LIMIT || st == LAC_NO_MEMORY);
    if (!enough && err) *err = why;
    return enough ? LAC_OK : st;
  }
  return LAC_OK;
}

lac_status laci_observe_open(const laci_weighted_graph *from, const laci_observe_options *options,
                             laci_observation **observation, lac_error *err) {
  laci_observation *o = laci_alloc(1, sizeof *o);
  *observation = NULL;
  if (!o) return laci_fail_memory(err, options->what);
  o->how = *options;
  lac_status st =
      laci_network_create(from, options->samples->shapes, options->batch, &o->network, err);
  o->place = st ? NULL : laci_alloc((size_t)from->graph->n_values + 1, sizeof *o->place);
  if (!st && !o->place) st = laci_fail_memory(err, options->what);
  for (int v = 0; !st && v < from->graph->n_values; v++) o->place[v] = -1;
  for (int k = 0; !st && k < options->n_values; k++) o->place[options->values[k]] = k;
  if (!st) st = open_lanes(o, err);
  if (st) laci_observe_close(o);
  else *observation = o;
  return st;
}

void laci_observe_close(laci_observation *o) {
  if (!o) return;
  for (int lane = 0; lane < o->n_lanes; lane++) close_lane(&o->lanes[lane]);
  laci_free(o->lanes);
  laci_free(o->place);
  laci_network_destroy(o->network);
  laci_free(o);
}

int laci_observe_count_lanes(const laci_observation *o) { return o->n_lanes; }

static void run_lanes(int64_t begin, int64_t end, void *context) {
  const laci_observation *o = context;
  for (int64_t at = begin; at < end; at++) {
    observe_lane *lane = &o->lanes[at];
    lane->status =
        laci_engine_run(lane->engine, (const void *const *)lane->in, lane->out, &lane->err);
  }
}

lac_status laci_observe_run(laci_observation *o, lac_error *err) {
  const laci_observe_options *how = &o->how;
  for (int64_t first = 0; first < how->n_batches; first += o->n_lanes) {
    if (laci_interrupted())
      return laci_fail(err, LAC_INTERRUPTED, "interrupted while %s were measured", how->what);
    int64_t n = how->n_batches - first < o->n_lanes ? how->n_batches - first : o->n_lanes;
    for (int64_t at = 0; at < n; at++) {
      observe_lane *lane = &o->lanes[at];
      lane->first = (first + at) * how->batch;
      lac_status st =
          how->samples->fetch(how->samples->context, lane->first, how->batch, lane->in, err);
      if (st) return st;
    }
    laci_pool_for(how->pool, n, 1, run_lanes, o);
    for (int64_t at = 0; at < n; at++) {
      if (o->lanes[at].status && err) *err = o->lanes[at].err;
      if (o->lanes[at].status) return o->lanes[at].status;
    }
  }
  return LAC_OK;
}
