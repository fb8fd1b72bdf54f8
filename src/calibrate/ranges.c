/* SPDX-License-Identifier: Apache-2.0
 * The first pass over the samples finds the ranges of values, the second fills their histograms. */
#include "calibrate/ranges.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/to_int.h"
#include "calibrate/observe_in.h"
#include "graph/graph.h"

typedef struct range_job {
  const laci_ranges_options *how;
  const laci_graph *graph;
  laci_range *ranges; /* [n_workers, n_values] ranges of each worker's (engine's) batches */
  int n_workers;
  bool counts; /* true in the second pass, which fills the histograms */
} range_job;

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

static void add_to_histogram(laci_range *r, const float *x, int64_t n) {
  double per = r->high > r->low ? LACI_RANGE_BINS / (r->high - r->low) : 0;
  for (int64_t i = 0; i < n; i++) {
    if (x[i] == 0) {
      r->n_zeros++;
      continue;
    }
    r->bins[laci_clamp_to_range(((double)x[i] - r->low) * per, 0, LACI_RANGE_BINS - 1)]++;
    r->n_others++;
  }
}

static laci_range *range_in_worker(const range_job *job, int worker, int value) {
  return &job->ranges[(size_t)worker * (size_t)job->how->n_values + (size_t)value];
}

static lac_status add_value_to_range(void *context, const laci_observed *seen, lac_error *err) {
  const range_job *job = context;
  laci_range *r = range_in_worker(job, seen->worker, seen->place);
  if (job->counts) add_to_histogram(r, seen->elements, seen->n);
  else if (!widen_range(r, seen->elements, seen->n))
    return laci_fail(err, LAC_BAD_VALUE,
                     "value '%s' is NaN or infinite on the calibration data; wanted finite numbers",
                     job->graph->values[job->how->values[seen->place]].name);
  return LAC_OK;
}

static void merge_worker_ranges(const range_job *job, laci_range *ranges) {
  for (int v = 0; v < job->how->n_values; v++) {
    for (int worker = 0; worker < job->n_workers; worker++) {
      const laci_range *r = range_in_worker(job, worker, v);
      if (r->low < ranges[v].low) ranges[v].low = r->low;
      if (r->high > ranges[v].high) ranges[v].high = r->high;
    }
    for (int worker = 0; worker < job->n_workers; worker++)
      *range_in_worker(job, worker, v) = ranges[v];
  }
}

static void merge_worker_histograms(const range_job *job, laci_range *ranges) {
  for (int v = 0; v < job->how->n_values; v++) {
    for (int worker = 0; worker < job->n_workers; worker++) {
      const laci_range *r = range_in_worker(job, worker, v);
      ranges[v].n_zeros += r->n_zeros;
      ranges[v].n_others += r->n_others;
      for (int k = 0; k < LACI_RANGE_BINS; k++) ranges[v].bins[k] += r->bins[k];
    }
  }
}

lac_status laci_ranges_measure(const laci_weighted_graph *from, const laci_ranges_options *options,
                               laci_range *ranges, lac_error *err) {
  range_job job = {.how = options, .graph = from->graph};
  const laci_observe_options how = {.values = options->values,
                                    .n_values = options->n_values,
                                    .samples = options->samples,
                                    .batch = options->batch,
                                    .n_batches = options->n_batches,
                                    .pool = options->pool,
                                    .budget = options->budget,
                                    .on_value = add_value_to_range,
                                    .context = &job,
                                    .what = "ranges of values"};
  laci_observation *observation = NULL;
  memset(ranges, 0, (size_t)options->n_values * sizeof *ranges);
  lac_status st = laci_observe_open(from, &how, &observation, err);
  if (st) return st;
  job.n_workers = laci_observe_max_parallel_batches(observation);
  job.ranges =
      laci_alloc((size_t)job.n_workers * (size_t)options->n_values + 1, sizeof *job.ranges);
  if (!job.ranges) st = laci_fail_memory(err, how.what);
  if (!st) st = laci_observe_run(observation, err);
  if (!st) merge_worker_ranges(&job, ranges);
  job.counts = true;
  if (!st) st = laci_observe_run(observation, err);
  if (!st) merge_worker_histograms(&job, ranges);
  laci_free(job.ranges);
  laci_observe_close(observation);
  return st;
}
