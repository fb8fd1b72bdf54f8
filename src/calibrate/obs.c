/* SPDX-License-Identifier: Apache-2.0
 * ExactOBS: removes the weights of each row one by one, always the one with the least
 *
 *     w_p^2 / P_pp,    P = ((H + d I)[alive, alive])^-1
 *
 * in blocks that still hold more than n. The weights alive are then updated, w -= w_p / P_pp * P_p,
 * and p is removed from P: P -= u u', u = P_p / sqrt(P_pp).
 *
 * P itself is updated only every PENDING steps, by one matrix product. Until then the vectors u of
 * these steps are kept separately, and the one row of P that a step needs is computed from both.
 * The update also deletes the removed weights' rows and columns from P, so that later steps cost
 * less. In the asymmetric form, a row starts as that of G (H + d I)^-1 instead of W_d. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "calibrate/inverse_in.h"
#include "cpu/pool.h"
#include "kernel/linear/linear.h"

enum {
  PENDING = 64,
  STRIP = 256 /* rows of P that are updated at once, up to their diagonal */
};

typedef struct pruning {
  const laci_fit *fit;
  const double *inverse; /* [columns, columns] */
  double least; /* lower bound of P's diagonal elements, but for rounding: 1 / trace(H + d I) */
  uint8_t *mask;
  double *weight; /* [rows, columns] initially the start weights, at the end the result */
  _Atomic int next;
  _Atomic bool short_of_memory, interrupted;
} pruning;

/** The state of a lane for one row; its n columns are those that were alive at the last update of
 * P. */
typedef struct lane {
  int n;                /* columns of P */
  int n_pending;        /* number of u since the last update */
  double *p;            /* [n, n] lower triangle */
  double *u;            /* [PENDING, n] */
  double *w, *diagonal; /* [n] */
  int *column;          /* [n] index of the column in the row */
  int *block;           /* [n] */
  uint8_t *alive;       /* [n] */
  int *excess;          /* [blocks] number of weights still to be removed */
} lane;

static bool lane_init(lane *l, const laci_fit *fit) {
  const size_t n = (size_t)fit->columns;
  l->p = laci_alloc(n * n, sizeof *l->p);
  l->u = laci_alloc(n * PENDING, sizeof *l->u);
  l->w = laci_alloc(n, sizeof *l->w);
  l->diagonal = laci_alloc(n, sizeof *l->diagonal);
  l->column = laci_alloc(n, sizeof *l->column);
  l->block = laci_alloc(n, sizeof *l->block);
  l->alive = laci_alloc(n, sizeof *l->alive);
  l->excess = laci_alloc((size_t)laci_fit_count_blocks(fit), sizeof *l->excess);
  return l->p && l->u && l->w && l->diagonal && l->column && l->block && l->alive && l->excess;
}

static void lane_clear(lane *l) {
  laci_free(l->p);
  laci_free(l->u);
  laci_free(l->w);
  laci_free(l->diagonal);
  laci_free(l->column);
  laci_free(l->block);
  laci_free(l->alive);
  laci_free(l->excess);
}

/** Initializes the lane for a row; returns how many weights are to be removed. */
static int begin_row(const pruning *job, lane *l, const double *weight) {
  const laci_fit *fit = job->fit;
  const int n_blocks = laci_fit_count_blocks(fit);
  int to_go = 0;
  l->n = fit->columns;
  l->n_pending = 0;
  memcpy(l->p, job->inverse, sizeof *l->p * (size_t)l->n * (size_t)l->n);
  memcpy(l->w, weight, sizeof *l->w * (size_t)l->n);
  memset(l->alive, 1, (size_t)l->n);
  for (int b = 0; b < n_blocks; b++) {
    const laci_fit_block block = laci_fit_block_at(fit, b);
    l->excess[b] = block.n_columns > fit->pattern.n ? block.n_columns - fit->pattern.n : 0;
    to_go += l->excess[b];
    for (int c = block.first; c < block.first + block.n_columns; c++) l->block[c] = b;
  }
  for (int c = 0; c < l->n; c++) {
    l->column[c] = c;
    l->diagonal[c] = l->p[(int64_t)c * l->n + c];
  }
  return to_go;
}

static int cheapest_weight(const lane *l) {
  double least = INFINITY;
  int found = -1;
  for (int c = 0; c < l->n; c++) {
    if (!l->alive[c] || !l->excess[l->block[c]]) continue;
    const double loss = l->w[c] * l->w[c] / l->diagonal[c];
    if (loss < least || found < 0) {
      least = loss;
      found = c;
    }
  }
  return found;
}

static void remove_weight(lane *l, int at, double least_diagonal) {
  const int n = l->n;
  double *u = l->u + (int64_t)l->n_pending * n;
  const double pivot = l->diagonal[at], part = l->w[at] / pivot, scale = 1 / sqrt(pivot);
  memcpy(u, l->p + (int64_t)at * n, sizeof *u * (size_t)at);
  for (int c = at; c < n; c++) u[c] = l->p[(int64_t)c * n + at];
  for (int i = 0; i < l->n_pending; i++) {
    const double *earlier = l->u + (int64_t)i * n, factor = earlier[at];
    for (int c = 0; c < n; c++) u[c] -= factor * earlier[c];
  }
  for (int c = 0; c < n; c++) {
    if (!l->alive[c])
      u[c] = 0; /* set to exactly 0, since the computed value is 0 only up to
                                   rounding */
    l->w[c] -= part * u[c];
    u[c] *= scale;
    l->diagonal[c] = fmax(l->diagonal[c] - u[c] * u[c], least_diagonal);
  }
  l->w[at] = 0;
  l->alive[at] = 0;
  l->excess[l->block[at]]--;
  l->n_pending++;
}

/* Sets P to the alive rows and columns of P - U' U. */
static void apply_removals(lane *l) {
  const int n = l->n;
  int left = 0;
  for (int first = 0; first < n; first += STRIP) {
    const int rows = n - first < STRIP ? n - first : STRIP;
    laci_linear_product(NULL, &(laci_linear_operands){.m = rows,
                                                      .n = first + rows,
                                                      .k = l->n_pending,
                                                      .a_transposed = true,
                                                      .alpha = -1,
                                                      .beta = 1,
                                                      .a = l->u + first,
                                                      .lda = n,
                                                      .b = l->u,
                                                      .ldb = n,
                                                      .c = l->p + (int64_t)first * n,
                                                      .ldc = n});
  }
  for (int c = 0; c < n; c++) left += l->alive[c];
  for (int c = 0, to = 0; c < n; c++) { /* in place: a write never overtakes the reads */
    if (!l->alive[c]) continue;
    double *row = l->p + (int64_t)to * left;
    const double *old = l->p + (int64_t)c * n;
    for (int d = 0, j = 0; d <= c; d++) {
      if (l->alive[d]) row[j++] = old[d];
    }
    l->w[to] = l->w[c];
    l->diagonal[to] = l->diagonal[c];
    l->column[to] = l->column[c];
    l->block[to] = l->block[c];
    to++;
  }
  memset(l->alive, 1, (size_t)left);
  l->n = left;
  l->n_pending = 0;
}

static void prune_row(const pruning *job, lane *l, int row) {
  const int columns = job->fit->columns;
  double *weight = job->weight + (int64_t)row * columns;
  uint8_t *mask = job->mask + (int64_t)row * columns;
  for (int to_go = begin_row(job, l, weight); to_go > 0; to_go--) {
    remove_weight(l, cheapest_weight(l), job->least);
    if (l->n_pending == PENDING && to_go > 1) apply_removals(l);
  }
  memset(weight, 0, sizeof *weight * (size_t)columns);
  memset(mask, 0, (size_t)columns);
  for (int c = 0; c < l->n; c++) {
    if (!l->alive[c]) continue;
    weight[l->column[c]] = l->w[c];
    mask[l->column[c]] = 1;
  }
}

static void run_lane(int64_t begin, int64_t end, void *context) {
  pruning *job = context;
  lane l = {0};
  (void)begin;
  (void)end;
  if (atomic_load(&job->next) >= job->fit->rows) return;
  if (!lane_init(&l, job->fit)) job->short_of_memory = true;
  while (!job->short_of_memory) {
    const int row = atomic_fetch_add(&job->next, 1);
    if (row >= job->fit->rows) break;
    if (laci_interrupted()) job->interrupted = true;
    if (job->interrupted) break;
    prune_row(job, &l, row);
  }
  lane_clear(&l);
}

static lac_status choose_mask(const laci_sums *sums, uint8_t *mask, double *weight,
                              lac_error *err) {
  const laci_fit *fit = sums->fit;
  const size_t n = (size_t)fit->columns;
  double *inverse = laci_alloc(n * n, sizeof *inverse);
  if (!inverse) return laci_fail_memory(err, "the inverse of a layer's sums");
  lac_status st = laci_fit_invert_gram(sums, inverse, err);
  if (!st) st = laci_fit_compute_start_weights(sums, inverse, weight, err);
  if (!st) {
    pruning job = {.fit = fit, .inverse = inverse, .mask = mask, .weight = weight};
    double trace = 0;
    for (size_t c = 0; c < n; c++) trace += fit->h[c * n + c] + sums->damping;
    job.least = 1 / trace;
    laci_pool_for(sums->pool, laci_pool_threads(sums->pool), 1, run_lane, &job);
    if (job.short_of_memory) st = laci_fail_memory(err, "the inverses of a layer's rows");
    else if (job.interrupted) st = laci_fail(err, LAC_INTERRUPTED, "%s: interrupted", fit->name);
  }
  laci_free(inverse);
  return st;
}

static uint64_t memory_needed(const laci_fit *fit, int n_threads) {
  const uint64_t n = (uint64_t)fit->columns;
  const uint64_t of_a_lane = n * ((n + PENDING + 2) * sizeof(double) + 3 * sizeof(int) + 1);
  return laci_fit_inverse_memory(fit) + (uint64_t)n_threads * of_a_lane;
}

const laci_score laci_score_obs = {
    .name = "obs",
    .title = "ExactOBS",
    .paper =
        "Frantar, Alistarh, \"Optimal brain compression: a framework for accurate "
        "post-training quantization and pruning\", NeurIPS 2022",
    .needs_gram = true,
    .saliency = laci_fit_compute_obs_saliency,
    .choose = choose_mask,
    .memory = memory_needed,
};
