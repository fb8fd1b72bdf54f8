/* SPDX-License-Identifier: Apache-2.0
 * Blocked double GEMM. A is packed once into panels of 6 rows; a task packs a block of B that fits
 * the L2 cache and multiplies A's panels by it, one 6 x 8 tile of C in registers at a time.
 *
 *        k           n
 *     +-----+     +--+--+--+        tile of C = sum over k of (6 values of A) x (8 values of B)
 *   m |=====|  x  |  |  |  |
 *     +-----+     +--+--+--+        task = one block of columns x one run of A's panels
 *
 * The tile uses the compilers' vector types. Each product is rounded before it is added, on every
 * processor, so that results have the same bits. */
#include "graph/ops/shared/gemm_f64.h"

#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "base/min.h"
#include "base/memory.h"
#include "base/divide.h"

enum { ROWS = 6, COLS = LACI_GEMM_PANEL, BLOCK_K = 256, BLOCK_N = 96, MIN_TASKS = 8 };

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define HAVE_AVX2 1
#endif

typedef double vec4 __attribute__((vector_size(32), aligned(8), may_alias));

/** Computes a tile of C from k rows of two panels, k ascending: acc[r][.] = sum of a[k][r] *
 * b[k][.]. */
static inline __attribute__((always_inline)) void multiply_tile_body(int64_t k, const double *a,
                                                                     const double *b, double *acc) {
  vec4 low[ROWS] = {0}, high[ROWS] = {0};
  for (int64_t at = 0; at < k; at++, a += ROWS, b += COLS) {
    vec4 b_low = *(const vec4 *)b, b_high = *(const vec4 *)(b + 4);
#pragma GCC unroll 6
    for (int row = 0; row < ROWS; row++) {
      vec4 factor = {a[row], a[row], a[row], a[row]};
      low[row] += factor * b_low;
      high[row] += factor * b_high;
    }
  }
#pragma GCC unroll 6
  for (int row = 0; row < ROWS; row++) {
    *(vec4 *)(acc + row * COLS) = low[row];
    *(vec4 *)(acc + row * COLS + 4) = high[row];
  }
}

typedef void tile_kernel(int64_t k, const double *a, const double *b, double *acc);

static void multiply_tile_for_any_cpu(int64_t k, const double *a, const double *b, double *acc) {
  multiply_tile_body(k, a, b, acc);
}

#ifdef HAVE_AVX2
__attribute__((target("avx2"))) static void multiply_tile_avx2(int64_t k, const double *a,
                                                               const double *b, double *acc) {
  multiply_tile_body(k, a, b, acc);
}
#endif

static tile_kernel *choose_tile_kernel(void) {
#ifdef HAVE_AVX2
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2")) return multiply_tile_avx2;
#endif
  return multiply_tile_for_any_cpu;
}

typedef struct job {
  const laci_gemm *gemm;
  tile_kernel *tile;
  double *a_panels; /* [a_period][n_panels][k][ROWS] */
  int64_t n_panels, n_col_blocks, n_row_runs, panels_per_run;
  atomic_bool no_memory;
} job;

static void pack_panels_of_a(int64_t begin, int64_t end, void *context) {
  job *j = context;
  const laci_gemm *g = j->gemm;
  for (int64_t task = begin; task < end; task++) {
    int64_t batch = task / j->n_panels, row0 = task % j->n_panels * ROWS;
    int64_t n_rows = laci_min(ROWS, g->m - row0);
    const double *a = g->a + g->a_offset[batch] + row0 * g->a_row_stride;
    double *to = j->a_panels + task * g->k * ROWS;
    for (int64_t at = 0; at < g->k; at++, a += g->a_col_stride, to += ROWS) {
      for (int64_t row = 0; row < n_rows; row++) to[row] = a[row * g->a_row_stride];
    }
  }
}

/** Adds the rows and columns of a tile that are inside C to C. */
static void add_tile_to_c(const double *acc, int64_t n_rows, int64_t n_cols, double *c,
                          int64_t stride) {
  for (int64_t row = 0; row < n_rows; row++, acc += COLS, c += stride) {
    for (int64_t col = 0; col < n_cols; col++) c[col] += acc[col];
  }
}

static void multiply_block(const job *j, const laci_gemm_block *block, int64_t run,
                           const double *b_panels) {
  const laci_gemm *g = j->gemm;
  int64_t depth = block->k_end - block->k_begin;
  int64_t first = run * j->panels_per_run, last = laci_min(first + j->panels_per_run, j->n_panels);
  const double *a_panels = j->a_panels + block->batch % g->a_period * j->n_panels * g->k * ROWS;
  double *c = g->c + g->c_offset[block->batch];
  for (int64_t panel = first; panel < last; panel++) {
    const double *a = a_panels + (panel * g->k + block->k_begin) * ROWS;
    for (int64_t col = block->col_begin; col < block->col_end; col += COLS) {
      double acc[ROWS * COLS];
      j->tile(depth, a, b_panels + (col - block->col_begin) * depth, acc);
      add_tile_to_c(acc, laci_min(ROWS, g->m - panel * ROWS), laci_min(COLS, block->col_end - col),
                    c + panel * ROWS * g->c_row_stride + col, g->c_row_stride);
    }
  }
}

static void multiply_block_tasks(int64_t begin, int64_t end, void *context) {
  job *j = context;
  const laci_gemm *g = j->gemm;
  double *b_panels = laci_alloc((size_t)laci_min(BLOCK_K, g->k) * BLOCK_N, sizeof *b_panels);
  if (!b_panels) {
    atomic_store(&j->no_memory, true);
    return;
  }
  for (int64_t task = begin; task < end; task++) {
    int64_t run = task % j->n_row_runs, rest = task / j->n_row_runs;
    int64_t col = rest % j->n_col_blocks * BLOCK_N;
    laci_gemm_block block = {.batch = rest / j->n_col_blocks,
                             .col_begin = col,
                             .col_end = laci_min(col + BLOCK_N, g->n)};
    for (int64_t k = 0; k < g->k; k += BLOCK_K) {
      block.k_begin = k;
      block.k_end = laci_min(k + BLOCK_K, g->k);
      g->pack_b(g->pack_context, &block, b_panels);
      multiply_block(j, &block, run, b_panels);
    }
  }
  laci_free(b_panels);
}

lac_status laci_gemm_run(const laci_eval *eval, const laci_gemm *gemm) {
  if (gemm->n_batch == 0 || gemm->m == 0 || gemm->n == 0 || gemm->k == 0) return LAC_OK;
  job j = {.gemm = gemm, .tile = choose_tile_kernel(), .n_panels = laci_ceil_div(gemm->m, ROWS)};
  atomic_init(&j.no_memory, false);
  j.n_col_blocks = laci_ceil_div(gemm->n, BLOCK_N);
  /* Few column blocks (late, small images; a single row of classes) would leave threads idle, so
   * A's panels are divided into runs too. Packing B again for every run costs little compared with
   * the product as long as a run keeps some panels. */
  int64_t wanted = laci_ceil_div(MIN_TASKS, gemm->n_batch * j.n_col_blocks);
  j.n_row_runs = laci_min(wanted, laci_ceil_div(j.n_panels, 4));
  j.panels_per_run = laci_ceil_div(j.n_panels, j.n_row_runs);
  j.n_row_runs = laci_ceil_div(j.n_panels, j.panels_per_run);
  size_t n_packed = (size_t)(gemm->a_period * j.n_panels);
  j.a_panels = laci_alloc(n_packed * (size_t)gemm->k, ROWS * sizeof *j.a_panels);
  if (!j.a_panels) return laci_fail_memory(eval->err, eval->node->name);
  laci_eval_parallel(eval, (int64_t)n_packed, pack_panels_of_a, &j);
  laci_eval_parallel(eval, gemm->n_batch * j.n_col_blocks * j.n_row_runs, multiply_block_tasks, &j);
  laci_free(j.a_panels);
  return atomic_load(&j.no_memory) ? laci_fail_memory(eval->err, eval->node->name) : LAC_OK;
}

void laci_gemm_pack_matrix(const void *context, const laci_gemm_block *block, double *panels) {
  const laci_gemm_matrix *b = context;
  int64_t depth = block->k_end - block->k_begin;
  const double *from = b->data + b->offset[block->batch] + block->k_begin * b->row_stride;
  for (int64_t col = block->col_begin; col < block->col_end; col += COLS) {
    int64_t n_cols = laci_min(COLS, block->col_end - col);
    double *to = panels + (col - block->col_begin) * depth;
    for (int64_t lane = 0; lane < n_cols; lane++) {
      const double *column = from + (col + lane) * b->col_stride;
      for (int64_t k = 0; k < depth; k++) to[k * COLS + lane] = column[k * b->row_stride];
    }
  }
}
