/* SPDX-License-Identifier: Apache-2.0
 * Search algorithms with one interface: a matrix and a budget in, efficacy and time out.
 *
 * Most are the library's strategies as they are. One is made of them here, as a rival that deserves
 * the same time: "swap, restarted" begins again from other random orders until the time is over,
 * and the best counts. Next: search_bench.c. */
#ifndef BENCH_CONTENDERS_H
#define BENCH_CONTENDERS_H

#include <string.h>

#include "base/clock.h"
#include "matrices.h"

/** seconds 0: by iterations, or by effort where these are 0 too. */
typedef struct budget {
  double seconds;
  int64_t iterations;
  laci_effort effort;
  uint64_t seed;
} budget;

typedef struct outcome {
  double efficacy, seconds;
  int64_t iterations;
  bool proven;
} outcome;

/** False: the algorithm does not fit the matrix. */
typedef bool contender_run(const matrix *m, const char *strategy, budget b, laci_pool *pool,
                           outcome *out);

typedef struct algorithm {
  const char *name, *strategy;
  contender_run *run;
  bool drawn; /* other seeds give other results */
} algorithm;

static inline double efficacy_of(double kept, const laci_search_result *found) {
  double possible = found->upper - found->kept_identity;
  return possible > 0 ? 100 * (kept - found->kept_identity) / possible : 0;
}

/* The library's search, or the end: a bench makes no bad problems. */
static inline void search_matrix(const matrix *m, const char *strategy, budget b, laci_pool *pool,
                                 laci_search_result *found) {
  laci_search_options options = {.strategy = strategy, .effort = b.effort, .seed = b.seed};
  options.iterations = b.iterations;
  options.seconds = b.seconds;
  lac_error err = {0};
  if (!laci_search(&m->problem, &options, pool, found, &err)) return;
  (void)fprintf(stderr, "bench: %s\n", err.text);
  exit(1);
}

static inline bool run_strategy(const matrix *m, const char *strategy, budget b, laci_pool *pool,
                                outcome *out) {
  laci_search_result found = {.order = need((size_t)m->form.channels, sizeof *found.order)};
  double start = laci_clock_seconds();
  search_matrix(m, strategy, b, pool, &found);
  out->seconds = laci_clock_seconds() - start;
  out->efficacy = efficacy_of(found.kept, &found);
  out->iterations = found.iterations;
  out->proven = found.proven != 0;
  free(found.order);
  return strcmp(found.strategy, strategy) == 0;
}

/* ---- restarts ---- */

static inline void shuffle(int32_t *order, int n, uint64_t seed, uint64_t stream) {
  for (int i = n - 1; i > 0; i--) {
    int j = (int)laci_rng_integer_below(seed, stream, (uint64_t)i, (uint64_t)i + 1);
    int32_t other = order[i];
    order[i] = order[j];
    order[j] = other;
  }
}

/* The first start is the order as it is, so that one start alone is the strategy itself. What a
 * start keeps compares with what the matrix kept, not with what its shuffled copy did. */
static inline bool run_restarts(const matrix *m, const char *strategy, budget b, laci_pool *pool,
                                outcome *out) {
  const int n = m->form.channels;
  laci_search_result found = {.order = need((size_t)n, sizeof *found.order)}, first = {0};
  int32_t *start_order = need((size_t)n, sizeof *start_order);
  double start = laci_clock_seconds(), best = 0, limit = b.seconds;
  matrix copy;
  matrix_init_empty(&copy, &m->form);
  *out = (outcome){0};
  for (int j = 0; j < n; j++) start_order[j] = j;
  do {
    if (out->iterations > 0) shuffle(start_order, n, b.seed, (uint64_t)out->iterations);
    matrix_gather(&copy, m, start_order);
    b.seconds = limit - (laci_clock_seconds() - start);
    if (!(b.seconds > 0)) break;
    search_matrix(&copy, strategy, b, pool, &found);
    if (out->iterations++ == 0) first = found;
    if (found.kept > best) best = found.kept;
    out->seconds = laci_clock_seconds() - start;
  } while (out->seconds < limit);
  bool fits = out->iterations == 0 || strcmp(first.strategy, strategy) == 0;
  out->efficacy = out->iterations > 0 ? efficacy_of(best, &first) : 0;
  matrix_clear(&copy);
  free(start_order);
  free(found.order);
  return fits;
}

#endif
