/* SPDX-License-Identifier: Apache-2.0
 * Adds up Gram matrices batch by batch (grams_in.h): chooses which positions of a batch are summed,
 * and allocates the memory. */
#include "base/to_int.h"
#include "calibrate/grams_in.h"

#include <string.h>

#include "base/budget.h"
#include "base/divide.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/min.h"
#include "base/memory.h"
#include "base/rng.h"
#include "cpu/pool.h"
#include "kernel/gram/gram.h"

enum { LINE = 64 }; /* number of positions whose inputs are summed at a time */
enum { POSITIONS_SEED = 17, ALL_COST_A_PART = 3, FEW_POSITIONS = 4096, MOST_WAITING = 64 };
enum {
  WIDE = 1024
};                                                      /* number of columns from which the Gram
                                                           matrices no longer fit into the caches */
static const int64_t waiting_bytes = (int64_t)32 << 20; /* limit of the bytes of the batches that
                                                           are collected, for each of the two
                                                           networks */

static int64_t count_gram_elements(const laci_unfold *u) {
  const int64_t columns = laci_unfold_n_columns(u);
  return u->groups * columns * columns;
}

/* Returns the number of floats of the value in one batch. */
static int64_t floats_per_batch(const laci_unfold *u) {
  int64_t n = u->images * u->groups * u->channels;
  for (int i = 0; i < LACI_UNFOLD_AXES; i++) n *= u->axis[i].in;
  return n;
}

static int count_batches_to_collect(const laci_unfold *u) {
  const int64_t bytes = floats_per_batch(u) * (int64_t)sizeof(float),
                positions = laci_unfold_n_positions(u);
  if (bytes == 0 || positions == 0 || laci_unfold_n_columns(u) < WIDE) return 1;
  int64_t n = FEW_POSITIONS / positions;
  n = laci_min(laci_min(n, waiting_bytes / bytes), MOST_WAITING);
  return n > 1 ? (int)n : 1;
}

static laci_unfold make_unfold_of_batches(const laci_unfold *u, int n) {
  laci_unfold all = *u;
  all.images *= n;
  return all;
}

/* Returns how many positions (inputs of the layer's matrix product) of n batches are summed. */
static int64_t count_summed_positions(const laci_unfold *u, int64_t most, int n) {
  const int64_t all = laci_unfold_n_positions(u);
  const int64_t cost = laci_gram_can_correlate(u) ? all / ALL_COST_A_PART : all;
  return (most >= cost ? all : most) * n;
}

int64_t laci_grams_choose_positions(int64_t columns, int64_t of_wide, int64_t n_batches) {
  enum { EACH = 128, ENOUGH = 65536 };
  const int64_t least = of_wide * columns, most = laci_min(EACH * columns, ENOUGH);
  return laci_ceil_div(least > most ? least : most, n_batches);
}

uint64_t laci_grams_memory_bytes(const laci_unfold *u, bool asymmetric) {
  const int n = count_batches_to_collect(u);
  const laci_unfold all = make_unfold_of_batches(u, n);
  const size_t each = asymmetric ? 2 : 1;
  return laci_count_bytes_saturated(count_gram_elements(u), each * sizeof(double)) +
         laci_count_bytes_saturated(laci_unfold_n_positions(&all), sizeof(int64_t)) +
         laci_gram_scratch_bytes(&all, asymmetric) +
         (n > 1 ? laci_count_bytes_saturated(floats_per_batch(&all), each * sizeof(float)) : 0);
}

/* Allocates the buffers whose sizes depend on the size of a batch. */
static lac_status alloc_batch_buffers(laci_grams *g, lac_error *err) {
  const bool asymmetric = g->k != NULL;
  const int n = count_batches_to_collect(&g->unfold);
  const laci_unfold all = make_unfold_of_batches(&g->unfold, n);
  const size_t values = (size_t)floats_per_batch(&all);
  const int64_t taken = count_summed_positions(&g->unfold, g->most, n);
  const bool some = taken<laci_unfold_n_positions(&all), wait = n> 1;
  g->most_waiting = n;
  if (some) g->positions = laci_alloc((size_t)taken, sizeof *g->positions);
  if (wait) g->pruned = laci_alloc(values, sizeof *g->pruned);
  if (wait && asymmetric) g->dense = laci_alloc(values, sizeof *g->dense);
  g->scratch = laci_alloc(laci_gram_scratch_bytes(&all, asymmetric), 1);
  if (g->scratch && (g->positions || !some) && (g->pruned || !wait) &&
      (g->dense || !wait || !asymmetric))
    return LAC_OK;
  return laci_fail_memory(err, "sums over a layer's inputs");
}

static void free_batch_buffers(laci_grams *g) {
  laci_free(g->positions);
  laci_free(g->scratch);
  laci_free(g->pruned);
  laci_free(g->dense);
  g->positions = NULL;
  g->scratch = NULL;
  g->pruned = g->dense = NULL;
}

lac_status laci_grams_init(laci_grams *g, const laci_unfold *unfold, bool asymmetric, int64_t most,
                           lac_error *err) {
  const size_t count = (size_t)count_gram_elements(unfold);
  *g = (laci_grams){.unfold = *unfold, .most = most};
  g->h = laci_alloc(count, sizeof *g->h);
  if (asymmetric) g->k = laci_alloc(count, sizeof *g->k);
  lac_status st =
      g->h && (g->k || !asymmetric) ? LAC_OK : laci_fail_memory(err, "sums over a layer's inputs");
  if (!st) st = alloc_batch_buffers(g, err);
  if (st) laci_grams_clear(g);
  return st;
}

void laci_grams_clear(laci_grams *g) {
  laci_free(g->h);
  laci_free(g->k);
  laci_free(g->sums);
  laci_free(g->dense_sums);
  laci_free(g->lines);
  free_batch_buffers(g);
  *g = (laci_grams){0};
}

/* Draws one position at random from each of `taken` equal parts of the range [0, all). */
static void draw_positions(const laci_grams *g, int64_t taken, int64_t all) {
  for (int64_t i = 0; i < taken; i++) {
    const double at = (double)i + laci_rng_unit_interval(POSITIONS_SEED, g->n_sums, (uint64_t)i);
    g->positions[i] = laci_min(laci_clamp_to_int64(at * (double)all / (double)taken), all - 1);
  }
}

lac_status laci_grams_want_sums(laci_grams *g, lac_error *err) {
  const size_t columns = (size_t)laci_unfold_n_columns(&g->unfold);
  const size_t n = (size_t)g->unfold.groups * columns;
  g->sums = laci_alloc(n, sizeof *g->sums);
  g->lines = laci_alloc(columns * LINE, sizeof *g->lines);
  if (g->k) g->dense_sums = laci_alloc(n, sizeof *g->dense_sums);
  return g->sums && g->lines && (g->dense_sums || !g->k)
             ? LAC_OK
             : laci_fail_memory(err, "sums over a layer's inputs");
}

/** Positions whose inputs are summed. */
typedef struct column_sums {
  laci_unfold_lines lines;
  double *sums; /* [columns] sums for the group */
} column_sums;

static void add_lines_to_sums(int64_t begin, int64_t end, void *context) {
  const column_sums *c = context;
  laci_unfold_fill_lines(&c->lines, begin, end);
  for (int64_t column = begin; column < end; column++) {
    const float *line = c->lines.lines + column * LINE;
    for (int64_t k = 0; k < c->lines.n; k++) c->sums[column] += (double)line[k];
  }
}

static void add_column_sums(const laci_grams *g, const laci_unfold *unfold, const float *value,
                            double *sums, laci_pool *pool) {
  const int n = (int)(unfold->images / g->unfold.images);
  const int64_t taken = count_summed_positions(&g->unfold, g->most, n);
  const int64_t columns = laci_unfold_n_columns(unfold);
  for (int64_t group = 0; group < unfold->groups; group++) {
    for (int64_t at = 0; at < taken; at += LINE) {
      column_sums c = {{.unfold = unfold,
                        .value = value,
                        .group = group,
                        .first = at,
                        .n = laci_min(LINE, taken - at),
                        .positions = g->positions,
                        .lines = g->lines,
                        .distance = LINE},
                       sums + group * columns};
      laci_pool_for(pool, columns, 64, add_lines_to_sums, &c);
    }
  }
}

static void add_batches_to_grams(laci_grams *g, const float *dense, const float *pruned,
                                 int n_batches, laci_pool *pool) {
  const laci_unfold unfold = make_unfold_of_batches(&g->unfold, n_batches);
  const int64_t taken = count_summed_positions(&g->unfold, g->most, n_batches);
  if (g->positions) draw_positions(g, taken, laci_unfold_n_positions(&unfold));
  const laci_gram gram = {.unfold = &unfold,
                          .pruned = pruned,
                          .dense = g->k ? dense : NULL,
                          .positions = g->positions,
                          .n = taken,
                          .h = g->h,
                          .k = g->k,
                          .scratch = g->scratch};
  laci_gram_add_positions(&gram, pool);
  if (g->sums) add_column_sums(g, &unfold, pruned, g->sums, pool);
  if (g->dense_sums) add_column_sums(g, &unfold, dense, g->dense_sums, pool);
  g->n_positions += taken;
  g->n_sums++;
}

static void add_collected_batches(laci_grams *g, laci_pool *pool) {
  if (g->n_waiting > 0) add_batches_to_grams(g, g->dense, g->pruned, g->n_waiting, pool);
  g->n_waiting = 0;
}

void laci_grams_add(laci_grams *g, const float *dense, const float *pruned, laci_pool *pool) {
  if (g->most_waiting == 1) {
    add_batches_to_grams(g, dense, pruned, 1, pool);
    return;
  }
  const size_t n = (size_t)floats_per_batch(&g->unfold), at = (size_t)g->n_waiting * n;
  memcpy(g->pruned + at, pruned, n * sizeof *pruned);
  if (g->k) memcpy(g->dense + at, dense, n * sizeof *dense);
  if (++g->n_waiting == g->most_waiting) add_collected_batches(g, pool);
}

lac_status laci_grams_set_batch_sizes(laci_grams *g, const laci_unfold *unfold, laci_pool *pool,
                                      lac_error *err) {
  if (laci_unfold_equal(&g->unfold, unfold)) return LAC_OK;
  add_collected_batches(g, pool);
  free_batch_buffers(g);
  g->unfold = *unfold;
  return alloc_batch_buffers(g, err);
}

void laci_grams_finish(laci_grams *g, laci_pool *pool) {
  const int64_t columns = laci_unfold_n_columns(&g->unfold);
  add_collected_batches(g, pool);
  for (int64_t group = 0; group < g->unfold.groups; group++)
    laci_gram_mirror_upper(g->h + group * columns * columns, columns, pool);
}

double laci_grams_measure_seconds(const laci_unfold *unfold, bool asymmetric, int64_t most,
                                  laci_pool *pool) {
  laci_grams g;
  lac_error ignored = {0};
  float *zeros = laci_alloc((size_t)floats_per_batch(unfold) + 1, sizeof *zeros);
  double seconds = -1;
  if (zeros && !laci_grams_init(&g, unfold, asymmetric, most, &ignored)) {
    const int n = g.most_waiting;
    for (int time = 0; time < (n == 1 ? 2 : 1); time++) { /* a single batch is added twice, and the
                                                             shorter time counts, since the first
                                                             addition touches new memory */
      const double began = laci_clock_seconds();
      for (int i = 0; i < n; i++) laci_grams_add(&g, zeros, zeros, pool);
      const double each = (laci_clock_seconds() - began) / n;
      if (seconds < 0 || each < seconds) seconds = each;
    }
    laci_grams_clear(&g);
  }
  laci_free(zeros);
  return seconds;
}
