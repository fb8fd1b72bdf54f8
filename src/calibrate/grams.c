/* SPDX-License-Identifier: Apache-2.0
 * Sums of products: a block of positions at a time in float32, the blocks in double, in their
 * order. Several blocks are worked on side by side, each by one thread. */
#include "calibrate/grams_in.h"

#include "base/budget.h"
#include "base/error.h"
#include "base/least.h"
#include "base/rng.h"
#include "cpu/pool.h"
#include "kernel/linear/linear.h"

enum { POSITIONS_SEED = 17, BLOCK = 1024, PANEL = 192, MOST_LANES = 8, AT_ONCE = 1 << 14 };

static int lanes_for(int n_threads) { return n_threads < MOST_LANES ? n_threads : MOST_LANES; }

uint64_t laci_grams_memory(const laci_unfold *u, bool asymmetric, int n_threads) {
  int64_t columns = laci_unfold_columns(u), n = asymmetric ? 2 : 1;
  int64_t lane = BLOCK * columns * n + columns * columns;
  return laci_bytes_of(u->groups * columns * columns * n, sizeof(double)) +
         2 * laci_bytes_of(lane * lanes_for(n_threads), sizeof(float));
}

/* ---- Setting up ---- */

static lac_status open_lane(const laci_grams *g, laci_gram_lane *lane, lac_error *err) {
  size_t columns = (size_t)laci_unfold_columns(&g->unfold), rows = (size_t)g->block * columns;
  lane->positions = laci_alloc((size_t)g->block, sizeof *lane->positions);
  lane->pruned = laci_alloc(rows, sizeof *lane->pruned);
  if (g->k) lane->dense = laci_alloc(rows, sizeof *lane->dense);
  lane->product = laci_alloc(columns * columns, sizeof *lane->product);
  bool ok = lane->positions && lane->pruned && lane->product && (lane->dense || !g->k);
  return ok ? LAC_OK : laci_fail_memory(err, "sums over a layer's inputs");
}

lac_status laci_grams_init(laci_grams *g, const laci_unfold *unfold, bool asymmetric, int n_threads,
                           int64_t most, lac_error *err) {
  size_t columns = (size_t)laci_unfold_columns(unfold);
  size_t n = (size_t)unfold->groups * columns * columns;
  *g = (laci_grams){.unfold = *unfold,
                    .n_taken = laci_least(most, laci_unfold_positions(unfold)),
                    .n_lanes = lanes_for(n_threads)};
  g->block = laci_least(BLOCK, g->n_taken);
  g->h = laci_alloc(n, sizeof *g->h);
  if (asymmetric) g->k = laci_alloc(n, sizeof *g->k);
  g->lanes = laci_alloc((size_t)g->n_lanes, sizeof *g->lanes);
  bool ok = g->h && g->lanes && (g->k || !asymmetric);
  lac_status st = ok ? LAC_OK : laci_fail_memory(err, "sums over a layer's inputs");
  for (int lane = 0; lane < g->n_lanes && !st; lane++) st = open_lane(g, &g->lanes[lane], err);
  if (st) laci_grams_clear(g);
  return st;
}

void laci_grams_clear(laci_grams *g) {
  for (int lane = 0; g->lanes && lane < g->n_lanes; lane++) {
    laci_free(g->lanes[lane].positions);
    laci_free(g->lanes[lane].pruned);
    laci_free(g->lanes[lane].dense);
    laci_free(g->lanes[lane].product);
  }
  laci_free(g->lanes);
  laci_free(g->h);
  laci_free(g->k);
  *g = (laci_grams){0};
}

/* ---- A batch ---- */

typedef struct blocks {
  laci_grams *grams;
  const float *value[2]; /* dense, pruned */
  int64_t group, first;  /* position of lane 0 */
  int n;                 /* lanes that have one */
  bool with_dense;       /* dense' pruned, else pruned' pruned */
  double *sum;
} blocks;

/* The i-th of those that are taken: one in each of n_taken equal parts of the batch. */
static int64_t position_of(const laci_grams *g, int64_t i) {
  int64_t all = laci_unfold_positions(&g->unfold);
  if (g->n_taken == all) return i;
  double at = (double)i + laci_rng_unit(POSITIONS_SEED, g->n_batches, (uint64_t)i);
  return laci_least((int64_t)(at * (double)all / (double)g->n_taken), all - 1);
}

static int64_t unfold_block(const blocks *b, const laci_gram_lane *lane, int64_t first) {
  const laci_grams *g = b->grams;
  const laci_unfold_of of = {.value = b->value[b->with_dense ? 0 : 1],
                             .group = b->group,
                             .n = laci_least(g->block, g->n_taken - first),
                             .positions = lane->positions};
  for (int64_t i = 0; i < of.n; i++) lane->positions[i] = position_of(g, first + i);
  laci_unfold_rows(&g->unfold, &of, b->with_dense ? lane->dense : lane->pruned);
  return of.n;
}

/* Of pruned' pruned, what is below the diagonal by more than a panel is left out. */
static void multiply_lane(const blocks *b, const laci_gram_lane *lane, int64_t n) {
  int64_t columns = laci_unfold_columns(&b->grams->unfold);
  for (int64_t row = 0; row < columns; row += PANEL) {
    int64_t first = b->with_dense ? 0 : row;
    laci_linear_product_f32(
        NULL, &(laci_linear_operands_f32){.m = (int)laci_least(PANEL, columns - row),
                                          .n = (int)(columns - first),
                                          .k = (int)n,
                                          .lda = (int)columns,
                                          .ldb = (int)columns,
                                          .ldc = (int)columns,
                                          .a_transposed = true,
                                          .alpha = 1,
                                          .a = (b->with_dense ? lane->dense : lane->pruned) + row,
                                          .b = lane->pruned + first,
                                          .c = lane->product + row * columns + first});
  }
}

static void multiply_lanes(int64_t begin, int64_t end, void *context) {
  const blocks *b = context;
  for (int64_t at = begin; at < end; at++) {
    const laci_gram_lane *lane = &b->grams->lanes[at];
    multiply_lane(b, lane, unfold_block(b, lane, b->first + at * b->grams->block));
  }
}

static void add_rows(int64_t begin, int64_t end, void *context) {
  const blocks *b = context;
  int64_t columns = laci_unfold_columns(&b->grams->unfold);
  for (int lane = 0; lane < b->n; lane++) {
    const float *product = b->grams->lanes[lane].product;
    for (int64_t row = begin; row < end; row++) {
      int64_t first = b->with_dense ? 0 : row;
      for (int64_t i = row * columns + first; i < (row + 1) * columns; i++)
        b->sum[i] += (double)product[i];
    }
  }
}

static void add_blocks(blocks *b, laci_pool *pool) {
  int64_t columns = laci_unfold_columns(&b->grams->unfold);
  laci_pool_for(pool, b->n, 1, multiply_lanes, b);
  laci_pool_for(pool, columns, 1 + AT_ONCE / columns, add_rows, b);
}

void laci_grams_add(laci_grams *g, const float *dense, const float *pruned, laci_pool *pool) {
  int64_t positions = g->n_taken, columns = laci_unfold_columns(&g->unfold);
  blocks b = {.grams = g, .value = {dense, pruned}};
  for (b.group = 0; b.group < g->unfold.groups; b.group++) {
    for (b.first = 0; b.first < positions; b.first += g->n_lanes * g->block) {
      int64_t left = (positions - b.first + g->block - 1) / g->block;
      b.n = (int)laci_least(g->n_lanes, left);
      b.sum = g->h + b.group * columns * columns;
      b.with_dense = false;
      add_blocks(&b, pool);
      if (!g->k) continue;
      b.sum = g->k + b.group * columns * columns;
      b.with_dense = true; /* the pruned rows are still there */
      add_blocks(&b, pool);
    }
  }
  g->n_positions += positions;
  g->n_batches++;
}

void laci_grams_finish(laci_grams *g) {
  int64_t columns = laci_unfold_columns(&g->unfold);
  for (int64_t group = 0; group < g->unfold.groups; group++) {
    double *h = g->h + group * columns * columns;
    for (int64_t i = 0; i < columns; i++)
      for (int64_t j = 0; j < i; j++) h[i * columns + j] = h[j * columns + i];
  }
}
