/* SPDX-License-Identifier: Apache-2.0
 * Sums of products: float32 over a block of positions, the blocks in double, in their order. */
#include "calibrate/grams_in.h"

#include "base/budget.h"
#include "base/error.h"
#include "base/least.h"
#include "cpu/pool.h"

enum { BLOCK = 256, TILE = 64, STEP = 4 };

uint64_t laci_grams_memory(const laci_unfold *u, bool asymmetric, int n_threads) {
  (void)n_threads;
  int64_t columns = laci_unfold_columns(u);
  return laci_bytes_of(u->groups * columns * columns * (asymmetric ? 2 : 1), sizeof(double)) +
         laci_bytes_of(2 * BLOCK * columns, sizeof(float));
}

lac_status laci_grams_init(laci_grams *m, const laci_unfold *unfold, bool asymmetric, int n_threads,
                           lac_error *err) {
  (void)n_threads;
  *m = (laci_grams){.unfold = *unfold};
  size_t columns = (size_t)laci_unfold_columns(unfold);
  size_t n = (size_t)unfold->groups * columns * columns;
  m->h = laci_alloc(n, sizeof *m->h);
  if (asymmetric) m->k = laci_alloc(n, sizeof *m->k);
  m->scratch = laci_alloc(2 * BLOCK * columns, sizeof *m->scratch);
  if (m->h && m->scratch && (m->k || !asymmetric)) return LAC_OK;
  laci_grams_clear(m);
  return laci_fail_memory(err, "sums over a layer's inputs");
}

void laci_grams_clear(laci_grams *m) {
  laci_free(m->h);
  laci_free(m->k);
  laci_free(m->scratch);
  *m = (laci_grams){0};
}

typedef struct block {
  const laci_unfold *unfold;
  int64_t group, first, n, columns;
  const float *value;
  float *rows;
  const float *a, *b;
  double *sum;
  bool half;
} block;

static void unfold_some(int64_t begin, int64_t end, void *context) {
  const block *k = context;
  laci_unfold_rows(k->unfold, k->group, k->value, k->first + begin, end - begin,
                   k->rows + begin * k->columns);
}

static void add_tile(const block *k, int64_t i0, int64_t ni, int64_t j0, int64_t nj) {
  float sum[STEP][TILE] = {{0}};
  for (int64_t p = 0; p < k->n; p++) {
    const float *a = k->a + p * k->columns + i0, *b = k->b + p * k->columns + j0;
    for (int64_t i = 0; i < ni; i++)
      for (int64_t j = 0; j < nj; j++) sum[i][j] += a[i] * b[j];
  }
  for (int64_t i = 0; i < ni; i++)
    for (int64_t j = 0; j < nj; j++) k->sum[(i0 + i) * k->columns + j0 + j] += (double)sum[i][j];
}

static void add_rows(int64_t begin, int64_t end, void *context) {
  const block *k = context;
  for (int64_t i = begin * STEP; i < laci_least(end * STEP, k->columns); i += STEP) {
    int64_t first = k->half ? i / TILE * TILE : 0;
    for (int64_t j = first; j < k->columns; j += TILE)
      add_tile(k, i, laci_least(STEP, k->columns - i), j, laci_least(TILE, k->columns - j));
  }
}

static void add_block(laci_grams *m, block *k, const float *dense, const float *pruned,
                      laci_pool *pool) {
  float *p = m->scratch, *d = m->scratch + BLOCK * k->columns;
  int64_t size = k->columns * k->columns;
  k->value = pruned;
  k->rows = p;
  laci_pool_for(pool, k->n, 16, unfold_some, k);
  k->a = k->b = p;
  k->sum = m->h + k->group * size;
  k->half = true;
  int64_t steps = (k->columns + STEP - 1) / STEP;
  laci_pool_for(pool, steps, 4, add_rows, k);
  if (!m->k) return;
  k->value = dense;
  k->rows = d;
  laci_pool_for(pool, k->n, 16, unfold_some, k);
  k->a = d;
  k->sum = m->k + k->group * size;
  k->half = false;
  laci_pool_for(pool, steps, 4, add_rows, k);
}

lac_status laci_grams_add(laci_grams *m, const float *dense, const float *pruned, laci_pool *pool,
                          lac_error *err) {
  (void)err;
  int64_t positions = laci_unfold_positions(&m->unfold);
  for (int64_t group = 0; group < m->unfold.groups; group++) {
    for (int64_t first = 0; first < positions; first += BLOCK) {
      block k = {.unfold = &m->unfold,
                 .group = group,
                 .first = first,
                 .n = laci_least(BLOCK, positions - first),
                 .columns = laci_unfold_columns(&m->unfold)};
      add_block(m, &k, dense, pruned, pool);
    }
  }
  m->n_positions += positions;
  return LAC_OK;
}

void laci_grams_finish(laci_grams *m) {
  int64_t columns = laci_unfold_columns(&m->unfold);
  for (int64_t group = 0; group < m->unfold.groups; group++) {
    double *h = m->h + group * columns * columns;
    for (int64_t i = 0; i < columns; i++)
      for (int64_t j = 0; j < i; j++) h[i * columns + j] = h[j * columns + i];
  }
}
