/* SPDX-License-Identifier: Apache-2.0
 * Measures the baselines of lac_bench on all its threads (kernel/peak/peak.h measures one thread).
 *
 * The engine's threads belong to another pool, and spin for a while after their last work. So each
 * sample begins with a part that is not counted, during which they go to sleep. */
#include "api/bench/bench_in.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/to_int.h"
#include "cpu/pool.h"

enum { READ_PASSES = 4, PROBE_ITERATIONS = 20000 };
static const size_t read_bytes = LACI_BENCH_READ;
static const double warm_up_s = 2e-3, sample_s = 2e-3;

/* ---- Multiply-adds ---- */

typedef struct peak_job {
  laci_peak_kernel kernel;
  int64_t iterations;
} peak_job;

static void run_kernel(int64_t begin, int64_t end, void *context) {
  const peak_job *job = context;
  for (int64_t part = begin; part < end; part++) {
    float value;
    (void)job->kernel.run(job->iterations, &value);
  }
}

/* Runs the kernel once in each thread; returns the seconds. */
static double time_kernel_on_all_threads(laci_pool *pool, peak_job *job) {
  double begin = laci_clock_seconds();
  laci_pool_for(pool, laci_pool_threads(pool), 1, run_kernel, job);
  return laci_clock_seconds() - begin;
}

double laci_bench_measure_peak_rate(laci_pool *pool, laci_peak_kernel kernel) {
  float value;
  peak_job job = {.kernel = kernel, .iterations = PROBE_ITERATIONS};
  double warm = 0, one = 1;
  while (warm < warm_up_s) warm += one = time_kernel_on_all_threads(pool, &job);
  if (one > 0 && one < sample_s)
    job.iterations = laci_clamp_to_range(PROBE_ITERATIONS * sample_s / one, 0, INT64_MAX - 1) + 1;
  double seconds = time_kernel_on_all_threads(pool, &job);
  double each = kernel.run(1, &value) * (double)job.iterations;
  return seconds > 0 ? each * laci_pool_threads(pool) / seconds : 0;
}

/* ---- Memory ---- */

typedef struct read_job {
  const uint64_t *words;
  size_t words_per_part;
  uint64_t *seen; /* [parts] result of reading each part, so that no read is optimized away */
} read_job;

static void read_memory_part(int64_t begin, int64_t end, void *context) {
  const read_job *job = context;
  for (int64_t part = begin; part < end; part++) {
    job->seen[part] =
        laci_peak_read_memory(job->words + (size_t)part * job->words_per_part, job->words_per_part);
  }
}

lac_status laci_bench_measure_read_rate(laci_pool *pool, double *bytes_per_second, lac_error *err) {
  size_t n_parts = (size_t)laci_pool_threads(pool);
  size_t words_per_part = read_bytes / sizeof(uint64_t) / n_parts / 8 * 8; /* number of words per
                                                                              thread, a multiple of
                                                                              a cache line */
  uint64_t *words = laci_alloc(words_per_part * n_parts, sizeof *words);
  uint64_t *seen = laci_alloc(n_parts, sizeof *seen);
  lac_status st = words && seen ? LAC_OK : laci_fail_memory(err, "measuring memory");
  read_job job = {.words = words, .words_per_part = words_per_part, .seen = seen};
  *bytes_per_second = 0;
  /* Each page is written once, since pages that were never written are all mapped to one page of
   * zeros. */
  for (size_t at = 0; !st && at < words_per_part * n_parts; at += 512) words[at] = at;
  for (int pass = 0; !st && pass < READ_PASSES; pass++) {
    double begin = laci_clock_seconds();
    laci_pool_for(pool, (int64_t)n_parts, 1, read_memory_part, &job);
    double seconds = laci_clock_seconds() - begin;
    double rate = seconds > 0 ? (double)(words_per_part * n_parts * sizeof *words) / seconds : 0;
    if (rate > *bytes_per_second) *bytes_per_second = rate;
  }
  laci_free(words);
  laci_free(seen);
  return st;
}
