/* SPDX-License-Identifier: Apache-2.0
 * Ways to search, all with one face: a matrix and a budget in, efficacy and time out.
 *
 * Most are the library's strategies as they are. Two are made of them here, as rivals that deserve
 * the same time:
 *   swap, restarted   from other random orders until the time is over; the best counts
 *   re-split          all ways to split the 2 M columns of two blocks anew, for every pair of
 * blocks until none helps: what `stripes` is for 2:4, for any N:M. Two blocks are a problem small
 * enough for `exact`. Next: search_bench.c. */
#ifndef BENCH_WAYS_H
#define BENCH_WAYS_H

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

/** False: the way does not fit the matrix. */
typedef bool way_run(const matrix *m, const char *strategy, budget b, laci_pool *pool,
                     outcome *out);

typedef struct way {
  const char *name, *strategy;
  way_run *run;
  bool drawn; /* other seeds give other results */
} way;

static inline double efficacy_of(double kept, const laci_found *found) {
  double room = found->upper - found->kept_identity;
  return room > 0 ? 100 * (kept - found->kept_identity) / room : 0;
}

/* The library's search, or the end: a bench makes no bad problems. */
static inline void search_matrix(const matrix *m, const char *strategy, budget b, laci_pool *pool,
                                 laci_found *found) {
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
  laci_found found = {.order = need((size_t)m->form.channels, sizeof *found.order)};
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
    int j = (int)laci_rng_below(seed, stream, (uint64_t)i, (uint64_t)i + 1);
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
  laci_found found = {.order = need((size_t)n, sizeof *found.order)}, first = {0};
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

/* ---- re-split ---- */

typedef struct splitting {
  const matrix *m;
  matrix pair;        /* the columns of two blocks */
  laci_found found;   /* of the pair */
  int32_t *order;     /* [channels] the present order */
  int64_t *changed;   /* [blocks] sweep in which a block last changed */
  double kept, until; /* now; second of the clock at which time is over (0: never) */
  bool fits, over;
} splitting;

static inline bool resplit_pair(splitting *s, int a, int b) {
  const int size = s->m->form.pattern.m;
  int32_t columns[2 * 64];
  memcpy(columns, s->order + a * size, (size_t)size * sizeof *columns);
  memcpy(columns + size, s->order + b * size, (size_t)size * sizeof *columns);
  matrix_gather(&s->pair, s->m, columns);
  search_matrix(&s->pair, "exact", (budget){0}, NULL, &s->found);
  s->fits &= strcmp(s->found.strategy, "exact") == 0;
  double gain = s->found.kept - s->found.kept_identity;
  if (!s->fits || !(gain > 1e-12 * s->found.kept)) return false;
  for (int j = 0; j < size; j++) {
    s->order[a * size + j] = columns[s->found.order[j]];
    s->order[b * size + j] = columns[s->found.order[size + j]];
  }
  s->kept += gain;
  return true;
}

static inline bool resplit_sweep(splitting *s, int64_t number) {
  const int n_blocks = s->m->form.channels / s->m->form.pattern.m;
  bool improved = false;
  for (int a = 0; a < n_blocks; a++) {
    for (int b = a + 1; b < n_blocks && s->fits; b++) {
      if (s->changed[a] < number - 1 && s->changed[b] < number - 1) continue;
      s->over = s->until > 0 && laci_clock_seconds() > s->until;
      if (s->over) return false;
      if (!resplit_pair(s, a, b)) continue;
      s->changed[a] = s->changed[b] = number;
      improved = true;
    }
  }
  return improved;
}

static inline bool run_resplit(const matrix *m, const char *strategy, budget b, laci_pool *pool,
                               outcome *out) {
  (void)strategy;
  const int n = m->form.channels, size = m->form.pattern.m;
  double start = laci_clock_seconds();
  *out = (outcome){0};
  if (2 * size > 20 || n % size != 0) return false;
  splitting s = {.m = m, .fits = true, .until = b.seconds > 0 ? start + b.seconds : 0};
  matrix_form two_blocks = m->form;
  two_blocks.channels = 2 * size;
  matrix_init_empty(&s.pair, &two_blocks);
  s.order = need((size_t)n, sizeof *s.order);
  s.found.order = need((size_t)(2 * size), sizeof *s.found.order);
  s.changed = need((size_t)(n / size), sizeof *s.changed);
  laci_found whole = {.order = s.order};
  search_matrix(m, "none", b, pool, &whole); /* the measure, and the order as it is */
  s.kept = whole.kept_identity;
  while (resplit_sweep(&s, ++out->iterations)) continue;
  out->seconds = laci_clock_seconds() - start;
  out->efficacy = efficacy_of(s.kept, &whole);
  free(s.changed);
  free(s.found.order);
  free(s.order);
  matrix_clear(&s.pair);
  return s.fits;
}

#endif
