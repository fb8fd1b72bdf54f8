/* SPDX-License-Identifier: Apache-2.0
 * Observes values while a network runs over samples. The first pass finds their ranges, the second
 * fills their histograms. */
#include "calibrate/ranges.h"

#include <math.h>
#include <string.h>

#include "base/budget.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/to_int.h"
#include "calibrate/network_in.h"
#include "cpu/pool.h"
#include "engine/engine.h"

enum { MOST_LANES = 16 };

typedef struct range_lane {
  const laci_network *network;
  const int *place;   /* [graph->n_values] index of the value's range; -1: not wanted */
  laci_range *ranges; /* [n_values] of this lane */
  bool counts;        /* true in the second pass over the samples, which fills the histograms */
  laci_engine *engine;
  void **in, **out;
  lac_status status;
  lac_error err;
} range_lane;

typedef struct range_job {
  const laci_ranges_options *how;
  laci_network *network;
  int *place;
  range_lane *lanes;
  int n_lanes, n_values;
} range_job;

/* ---- Observing a value ---- */

static bool widen_range(laci_range *r, const float *x, int64_t n) {
  float low = (float)r->low, high = (float)r->high;
  bool finite = true;
  for (int64_t i = 0; i < n; i++) {
    finite &= isfinite(x[i]) != 0;
    if (x[i] < low) low = x[i];
    if (x[i] > high) high = x[i];
  }
  r->low = (double)low;
  r->high = (double)high;
  return finite;
}

static void count_bins(laci_range *r, const float *x, int64_t n) {
  double per = r->high > r->low ? LACI_RANGE_BINS / (r->high - r->low) : 0;
  for (int64_t i = 0; i < n; i++) {
    if (x[i] == 0) {
      r->n_zeros++;
      continue;
    }
    r->bins[laci_int_within(((double)x[i] - r->low) * per, 0, LACI_RANGE_BINS - 1)]++;
    r->n_others++;
  }
}

static lac_status observe_value(void *context, int value, const laci_engine_port *port,
                                const void *content, lac_error *err) {
  range_lane *w = context;
  if (value < 0 || w->place[value] < 0) return LAC_OK;
  laci_range *r = &w->ranges[w->place[value]];
  int64_t n = laci_shape_count(&port->type.shape);
  if (port->type.dtype != LAC_DTYPE_F32)
    return laci_fail(err, LAC_UNSUPPORTED, "value '%s' is not of floats", port->name);
  if (w->counts) count_bins(r, content, n);
  else if (!widen_range(r, content, n))
    return laci_fail(err, LAC_BAD_VALUE,
                     "value '%s' is NaN or infinite on the calibration data; wanted finite numbers",
                     w->network->graph.values[value].name);
  return LAC_OK;
}

/* ---- Running several engines at the same time ---- */

static void *alloc_port_buffer(const laci_engine_port *port) {
  return laci_alloc(port->size_bytes + 1, 1);
}

static lac_status open_lane(range_job *l, range_lane *w, laci_budget *budget, lac_error *err) {
  const laci_engine_observer observer = {
      .values = l->how->values, .n_values = l->n_values, .see = observe_value, .context = w};
  laci_engine_options options = {.threads = 1,
                                 .dense_only = true,
                                 .finite = LACI_FINITE_ASSUMED, /* values are checked in this file
                                                                   */
                                 .budget = budget,
                                 .observer = &observer};
  const laci_engine_port *ports;
  w->network = l->network;
  w->place = l->place;
  w->ranges = laci_alloc((size_t)l->n_values + 1, sizeof *w->ranges);
  if (!w->ranges) return laci_fail_memory(err, "ranges of values");
  lac_status st = laci_engine_create(&l->network->graph, &options, &w->engine, err);
  if (st) return st;
  int n_in = laci_engine_inputs(w->engine, &ports);
  w->in = laci_alloc((size_t)n_in + 1, sizeof *w->in);
  bool ok = w->in != NULL;
  for (int i = 0; i < n_in && ok; i++) ok = (w->in[i] = alloc_port_buffer(&ports[i])) != NULL;
  int n_out = laci_engine_outputs(w->engine, &ports);
  w->out = ok ? laci_alloc((size_t)n_out + 1, sizeof *w->out) : NULL;
  ok = ok && w->out;
  for (int i = 0; i < n_out && ok; i++) ok = (w->out[i] = alloc_port_buffer(&ports[i])) != NULL;
  return ok ? LAC_OK : laci_fail_memory(err, "ranges of values");
}

static void close_lane(range_lane *w) {
  const laci_engine_port *ports;
  int n_in = w->engine ? laci_engine_inputs(w->engine, &ports) : 0;
  int n_out = w->engine ? laci_engine_outputs(w->engine, &ports) : 0;
  for (int i = 0; w->in && i < n_in; i++) laci_free(w->in[i]);
  for (int i = 0; w->out && i < n_out; i++) laci_free(w->out[i]);
  laci_free(w->in);
  laci_free(w->out);
  laci_free(w->ranges);
  laci_engine_destroy(w->engine);
}

/* Opens the lanes, which run batches at the same time. The first lane must fit in memory; more are
 * added while memory allows. */
static lac_status open_lanes(range_job *l, lac_error *err) {
  laci_budget budget = l->how->budget ? *l->how->budget : laci_budget_with_limit(UINT64_MAX);
  int most = laci_pool_threads(l->how->pool);
  if (most > MOST_LANES) most = MOST_LANES;
  if (most > l->how->n_batches) most = (int)l->how->n_batches;
  if (most < 1) most = 1;
  l->lanes = laci_alloc((size_t)most, sizeof *l->lanes);
  if (!l->lanes) return laci_fail_memory(err, "ranges of values");
  for (; l->n_lanes < most; l->n_lanes++) {
    lac_error why = {0};
    lac_status st = open_lane(l, &l->lanes[l->n_lanes], &budget, &why);
    if (!st) continue;
    close_lane(&l->lanes[l->n_lanes]);
    l->lanes[l->n_lanes] = (range_lane){0};
    bool enough = l->n_lanes > 0 && (st == LAC_MEMORY_LIMIT || st == LAC_NO_MEMORY);
    if (!enough && err) *err = why;
    return enough ? LAC_OK : st;
  }
  return LAC_OK;
}

static void run_lanes(int64_t begin, int64_t end, void *context) {
  const range_job *l = context;
  for (int64_t lane = begin; lane < end; lane++) {
    range_lane *w = &l->lanes[lane];
    w->status = laci_engine_run(w->engine, (const void *const *)w->in, w->out, &w->err);
  }
}

static lac_status run_all(range_job *l, lac_error *err) {
  const laci_ranges_options *how = l->how;
  for (int64_t first = 0; first < how->n_batches; first += l->n_lanes) {
    if (laci_interrupted())
      return laci_fail(err, LAC_INTERRUPTED, "interrupted while ranges of values were measured");
    int64_t n = how->n_batches - first < l->n_lanes ? how->n_batches - first : l->n_lanes;
    lac_status st = LAC_OK;
    for (int64_t lane = 0; lane < n && !st; lane++)
      st = how->samples->fetch(how->samples->context, (first + lane) * how->batch, how->batch,
                               l->lanes[lane].in, err);
    if (st) return st;
    laci_pool_for(how->pool, n, 1, run_lanes, l);
    for (int64_t lane = 0; lane < n; lane++) {
      if (l->lanes[lane].status && err) *err = l->lanes[lane].err;
      if (l->lanes[lane].status) return l->lanes[lane].status;
    }
  }
  return LAC_OK;
}

/* ---- Two passes ---- */

static void join_ranges(range_job *l, laci_range *ranges) {
  for (int v = 0; v < l->n_values; v++) {
    for (int lane = 0; lane < l->n_lanes; lane++) {
      const laci_range *r = &l->lanes[lane].ranges[v];
      if (r->low < ranges[v].low) ranges[v].low = r->low;
      if (r->high > ranges[v].high) ranges[v].high = r->high;
    }
    for (int lane = 0; lane < l->n_lanes; lane++) l->lanes[lane].ranges[v] = ranges[v];
  }
  for (int lane = 0; lane < l->n_lanes; lane++) l->lanes[lane].counts = true;
}

static void join_counts(const range_job *l, laci_range *ranges) {
  for (int v = 0; v < l->n_values; v++) {
    for (int lane = 0; lane < l->n_lanes; lane++) {
      const laci_range *r = &l->lanes[lane].ranges[v];
      ranges[v].n_zeros += r->n_zeros;
      ranges[v].n_others += r->n_others;
      for (int k = 0; k < LACI_RANGE_BINS; k++) ranges[v].bins[k] += r->bins[k];
    }
  }
}

lac_status laci_ranges_measure(const laci_weighted_graph *from, const laci_ranges_options *options,
                               laci_range *ranges, lac_error *err) {
  range_job l = {.how = options, .n_values = options->n_values};
  memset(ranges, 0, (size_t)options->n_values * sizeof *ranges);
  lac_status st =
      laci_network_create(from, options->samples->shapes, options->batch, &l.network, err);
  l.place = st ? NULL : laci_alloc((size_t)from->graph->n_values + 1, sizeof *l.place);
  if (!st && !l.place) st = laci_fail_memory(err, "ranges of values");
  for (int v = 0; !st && v < from->graph->n_values; v++) l.place[v] = -1;
  for (int k = 0; !st && k < options->n_values; k++) l.place[options->values[k]] = k;
  if (!st) st = open_lanes(&l, err);
  if (!st) st = run_all(&l, err);
  if (!st) join_ranges(&l, ranges);
  if (!st) st = run_all(&l, err);
  if (!st) join_counts(&l, ranges);
  for (int lane = 0; lane < l.n_lanes; lane++) close_lane(&l.lanes[lane]);
  laci_free(l.lanes);
  laci_free(l.place);
  laci_network_destroy(l.network);
  return st;
}
