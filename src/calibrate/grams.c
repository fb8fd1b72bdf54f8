/* SPDX-License-Identifier: Apache-2.0
 * Sums of products, batch by batch: which positions of a batch are summed, and memory for it. */
#include "calibrate/grams_in.h"

#include "base/budget.h"
#include "base/error.h"
#include "base/least.h"
#include "base/memory.h"
#include "base/rng.h"
#include "kernel/gram/gram.h"

enum { POSITIONS_SEED = 17, ALL_COST_A_PART = 3 };

static int64_t elements_of(const laci_unfold *u) {
  const int64_t columns = laci_unfold_columns(u);
  return u->groups * columns * columns;
}

static int64_t taken_of(const laci_unfold *u, int64_t most) {
  const int64_t all = laci_unfold_positions(u);
  const int64_t cost = laci_gram_correlates(u) ? all / ALL_COST_A_PART : all;
  return most >= cost ? all : most;
}

uint64_t laci_grams_memory(const laci_unfold *u, bool asymmetric) {
  return laci_bytes_of(elements_of(u) * (asymmetric ? 2 : 1), sizeof(double)) +
         laci_bytes_of(laci_unfold_positions(u), sizeof(int64_t)) +
         laci_gram_scratch(u, asymmetric);
}

lac_status laci_grams_init(laci_grams *g, const laci_unfold *unfold, bool asymmetric, int64_t most,
                           lac_error *err) {
  const size_t n = (size_t)elements_of(unfold);
  *g = (laci_grams){.unfold = *unfold, .n_taken = taken_of(unfold, most)};
  const bool all = g->n_taken == laci_unfold_positions(unfold);
  g->h = laci_alloc(n, sizeof *g->h);
  if (asymmetric) g->k = laci_alloc(n, sizeof *g->k);
  if (!all) g->positions = laci_alloc((size_t)g->n_taken, sizeof *g->positions);
  g->scratch = laci_alloc(laci_gram_scratch(unfold, asymmetric), 1);
  if (g->h && g->scratch && (g->k || !asymmetric) && (g->positions || all)) return LAC_OK;
  laci_grams_clear(g);
  return laci_fail_memory(err, "sums over a layer's inputs");
}

void laci_grams_clear(laci_grams *g) {
  laci_free(g->h);
  laci_free(g->k);
  laci_free(g->positions);
  laci_free(g->scratch);
  *g = (laci_grams){0};
}

/* One in each of n_taken equal parts of the batch. */
static void draw_positions(laci_grams *g) {
  const int64_t all = laci_unfold_positions(&g->unfold);
  for (int64_t i = 0; i < g->n_taken; i++) {
    const double at = (double)i + laci_rng_unit(POSITIONS_SEED, g->n_batches, (uint64_t)i);
    g->positions[i] = laci_least((int64_t)(at * (double)all / (double)g->n_taken), all - 1);
  }
}

void laci_grams_add(laci_grams *g, const float *dense, const float *pruned, laci_pool *pool) {
  if (g->positions) draw_positions(g);
  const laci_gram gram = {.unfold = &g->unfold,
                          .pruned = pruned,
                          .dense = g->k ? dense : NULL,
                          .positions = g->positions,
                          .n = g->n_taken,
                          .h = g->h,
                          .k = g->k,
                          .scratch = g->scratch};
  laci_gram_add(&gram, pool);
  g->n_positions += g->n_taken;
  g->n_batches++;
}

void laci_grams_finish(const laci_grams *g, laci_pool *pool) {
  const int64_t columns = laci_unfold_columns(&g->unfold);
  for (int64_t group = 0; group < g->unfold.groups; group++)
    laci_gram_finish(g->h + group * columns * columns, columns, pool);
}
