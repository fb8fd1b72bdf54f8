/* SPDX-License-Identifier: Apache-2.0
 * Sums of products: a block of positions at a time in float32 by the engine, the blocks in double,
 * in their order. Several blocks are worked on side by side, each by one thread. */
#include "calibrate/grams_in.h"

#include <string.h>

#include "base/budget.h"
#include "base/error.h"
#include "base/least.h"
#include "cpu/pool.h"
#include "engine/engine.h"
#include "graph/infer.h"

enum { BLOCK = 1024, MOST_LANES = 8, AT_ONCE = 1 << 14 };

static int lanes_for(int n_threads) { return n_threads < MOST_LANES ? n_threads : MOST_LANES; }

uint64_t laci_grams_memory(const laci_unfold *u, bool asymmetric, int n_threads) {
  int64_t columns = laci_unfold_columns(u), n = asymmetric ? 2 : 1;
  int64_t lane = BLOCK * columns * n + columns * columns;
  return laci_bytes_of(u->groups * columns * columns * n, sizeof(double)) +
         2 * laci_bytes_of(lane * lanes_for(n_threads), sizeof(float));
}

/* ---- Setting up ---- */

static lac_status product_graph(int64_t block, int64_t columns, laci_graph **graph,
                                lac_error *err) {
  const laci_type type = {LAC_DTYPE_F32, {.rank = 2, .dims = {block, columns}}};
  int id;
  lac_status st = laci_graph_create(graph, err);
  if (st) return st;
  st = laci_graph_add_input(*graph, "a", &type, err);
  if (!st) st = laci_graph_add_input(*graph, "b", &type, err);
  if (!st) {
    const int in[] = {laci_graph_value(*graph, "a"), laci_graph_value(*graph, "b")};
    const int out[] = {laci_graph_value(*graph, "y")};
    laci_attr transposed = laci_attr_int("transA", 1);
    st = laci_graph_add_node(*graph,
                             &(laci_node){.type = "Gemm",
                                          .domain = "",
                                          .version = 13,
                                          .n_inputs = 2,
                                          .n_outputs = 1,
                                          .inputs = in,
                                          .outputs = out,
                                          .n_attrs = 1,
                                          .attrs = &transposed},
                             &id, err);
  }
  if (!st) st = laci_graph_add_output(*graph, "y", err);
  if (!st) st = laci_graph_finish(*graph, err);
  return st ? st : laci_graph_infer(*graph, NULL, 0, err);
}

static lac_status open_lane(const laci_grams *g, laci_gram_lane *lane, lac_error *err) {
  size_t columns = (size_t)laci_unfold_columns(&g->unfold), rows = (size_t)g->block * columns;
  lane->pruned = laci_alloc(rows, sizeof *lane->pruned);
  if (g->k) lane->dense = laci_alloc(rows, sizeof *lane->dense);
  lane->product = laci_alloc(columns * columns, sizeof *lane->product);
  if (!lane->pruned || !lane->product || (g->k && !lane->dense))
    return laci_fail_memory(err, "sums over a layer's inputs");
  const laci_engine_options options = {.threads = 1, .dense_only = true};
  return laci_engine_create(g->graph, &options, &lane->engine, err);
}

lac_status laci_grams_init(laci_grams *g, const laci_unfold *unfold, bool asymmetric, int n_threads,
                           lac_error *err) {
  size_t columns = (size_t)laci_unfold_columns(unfold);
  size_t n = (size_t)unfold->groups * columns * columns;
  *g = (laci_grams){.unfold = *unfold,
                    .block = laci_least(BLOCK, laci_unfold_positions(unfold)),
                    .n_lanes = lanes_for(n_threads)};
  g->h = laci_alloc(n, sizeof *g->h);
  if (asymmetric) g->k = laci_alloc(n, sizeof *g->k);
  g->lanes = laci_alloc((size_t)g->n_lanes, sizeof *g->lanes);
  bool ok = g->h && g->lanes && (g->k || !asymmetric);
  lac_status st = ok ? LAC_OK : laci_fail_memory(err, "sums over a layer's inputs");
  if (!st) st = product_graph(g->block, (int64_t)columns, &g->graph, err);
  for (int lane = 0; lane < g->n_lanes && !st; lane++) st = open_lane(g, &g->lanes[lane], err);
  if (st) laci_grams_clear(g);
  return st;
}

void laci_grams_clear(laci_grams *g) {
  for (int lane = 0; g->lanes && lane < g->n_lanes; lane++) {
    laci_engine_destroy(g->lanes[lane].engine);
    laci_free(g->lanes[lane].pruned);
    laci_free(g->lanes[lane].dense);
    laci_free(g->lanes[lane].product);
  }
  laci_free(g->lanes);
  laci_graph_destroy(g->graph);
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
  lac_status status[MOST_LANES];
  lac_error errors[MOST_LANES];
} blocks;

static void unfold_block(const blocks *b, const float *value, int64_t first, float *rows) {
  const laci_grams *g = b->grams;
  int64_t columns = laci_unfold_columns(&g->unfold);
  int64_t n = laci_least(g->block, laci_unfold_positions(&g->unfold) - first);
  laci_unfold_rows(&g->unfold, b->group, value, first, n, rows);
  memset(rows + n * columns, 0, (size_t)((g->block - n) * columns) * sizeof *rows);
}

static void multiply_lanes(int64_t begin, int64_t end, void *context) {
  blocks *b = context;
  for (int64_t at = begin; at < end; at++) {
    const laci_gram_lane *lane = &b->grams->lanes[at];
    int64_t first = b->first + at * b->grams->block;
    unfold_block(b, b->value[b->with_dense ? 0 : 1], first,
                 b->with_dense ? lane->dense : lane->pruned);
    const void *const in[] = {b->with_dense ? lane->dense : lane->pruned, lane->pruned};
    void *const out[] = {lane->product};
    b->status[at] = laci_engine_run(lane->engine, in, out, &b->errors[at]);
  }
}

static void add_products(int64_t begin, int64_t end, void *context) {
  const blocks *b = context;
  for (int lane = 0; lane < b->n; lane++) {
    const float *product = b->grams->lanes[lane].product;
    for (int64_t i = begin; i < end; i++) b->sum[i] += (double)product[i];
  }
}

static lac_status add_blocks(blocks *b, laci_pool *pool, lac_error *err) {
  int64_t columns = laci_unfold_columns(&b->grams->unfold);
  laci_pool_for(pool, b->n, 1, multiply_lanes, b);
  for (int lane = 0; lane < b->n; lane++) {
    if (b->status[lane] && err) *err = b->errors[lane];
    if (b->status[lane]) return b->status[lane];
  }
  laci_pool_for(pool, columns * columns, AT_ONCE, add_products, b);
  return LAC_OK;
}

lac_status laci_grams_add(laci_grams *g, const float *dense, const float *pruned, laci_pool *pool,
                          lac_error *err) {
  int64_t positions = laci_unfold_positions(&g->unfold), columns = laci_unfold_columns(&g->unfold);
  blocks b = {.grams = g, .value = {dense, pruned}};
  lac_status st = LAC_OK;
  for (b.group = 0; b.group < g->unfold.groups && !st; b.group++) {
    for (b.first = 0; b.first < positions && !st; b.first += g->n_lanes * g->block) {
      int64_t left = (positions - b.first + g->block - 1) / g->block;
      b.n = (int)laci_least(g->n_lanes, left);
      b.sum = g->h + b.group * columns * columns;
      b.with_dense = false;
      st = add_blocks(&b, pool, err);
      if (st || !g->k) continue;
      b.sum = g->k + b.group * columns * columns;
      b.with_dense = true; /* the pruned rows are still there */
      st = add_blocks(&b, pool, err);
    }
  }
  g->n_positions += positions;
  return st;
}
