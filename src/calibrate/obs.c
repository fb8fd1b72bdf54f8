/* SPDX-License-Identifier: Apache-2.0
 * ExactOBS: removes the weights of each row one by one, always the one with the least
 *
 *     w_p^2 / P_pp,    P = ((H + d I)[alive, alive])^-1
 *
 * in those N:M blocks that still have more than n weights. The remaining (alive) weights are then
 * updated, w -= w_p / P_pp * P_p, and p is removed from P: P -= u u', u = P_p / sqrt(P_pp).
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
  STRIP = 256 /* number of rows of P that one matrix product updates, up to their diagonal */
};

typedef struct pruning {
  const laci_fit *fit;
  const double *inverse; /* [columns, columns] inverse of the damped Gram matrix, (H + d I)^-1 */
  double least; /* lower bound of the diagonal elements of the inverse P, apart from rounding: 1 /
                   trace(H + d I) */
  uint8_t *mask;
  double *weight; /* [rows, columns] initially the start weights, at the end the result */
  _Atomic int next;
  _Atomic bool short_of_memory, interrupted;
} pruning;

/** A thread's memory for pruning one row. Its n columns are those whose weights were not removed
 * yet at the last update of P. */
typedef struct scratch {
  int n;                /* number of columns of the inverse P */
  int n_pending;        /* number of vectors in u, one for each step since the last update of P */
  double *p;            /* [n, n] P (top of this file), lower triangle */
  double *u;            /* [PENDING, n] vectors u by which P has not been updated yet */
  double *w, *diagonal; /* [n] weights of the row, and the current diagonal of the inverse P */
  int *column;          /* [n] for each column of the inverse P, the weight's column in the row */
  int *block;           /* [n] index of the N:M block that the weight is in */
  uint8_t *alive;       /* [n] 1: the weight has not been removed */
  int *excess;          /* [number of blocks] how many weights of each block must still be
                           removed */
} scratch;

static bool alloc_scratch(scratch *own, const laci_fit *fit) {
  const size_t n = (size_t)fit->columns;
  own->p = laci_alloc(n * n, sizeof *own->p);
  own->u = laci_alloc(n * PENDING, sizeof *own->u);
  own->w = laci_alloc(n, sizeof *own->w);
  own->diagonal = laci_alloc(n, sizeof *own->diagonal);
  own->column = laci_alloc(n, sizeof *own->column);
  own->block = laci_alloc(n, sizeof *own->block);
  own->alive = laci_alloc(n, sizeof *own->alive);
  own->excess = laci_alloc((size_t)laci_fit_count_blocks(fit), sizeof *own->excess);
  return own->p && own->u && own->w && own->diagonal && own->column && own->block && own->alive &&
         own->excess;
}

static void free_scratch(scratch *own) {
  laci_free(own->p);
  laci_free(own->u);
  laci_free(own->w);
  laci_free(own->diagonal);
  laci_free(own->column);
  laci_free(own->block);
  laci_free(own->alive);
  laci_free(own->excess);
}

/** Initializes the scratch for a row; returns how many weights are to be removed. */
static int init_scratch_for_row(const pruning *job, scratch *own, const double *weight) {
  const laci_fit *fit = job->fit;
  const int n_blocks = laci_fit_count_blocks(fit);
  int to_go = 0;
  own->n = fit->columns;
  own->n_pending = 0;
  memcpy(own->p, job->inverse, sizeof *own->p * (size_t)own->n * (size_t)own->n);
  memcpy(own->w, weight, sizeof *own->w * (size_t)own->n);
  memset(own->alive, 1, (size_t)own->n);
  for (int b = 0; b < n_blocks; b++) {
    const laci_fit_block block = laci_fit_find_block(fit, b);
    own->excess[b] = block.n_columns > fit->pattern.n ? block.n_columns - fit->pattern.n : 0;
    to_go += own->excess[b];
    for (int c = block.first; c < block.first + block.n_columns; c++) own->block[c] = b;
  }
  for (int c = 0; c < own->n; c++) {
    own->column[c] = c;
    own->diagonal[c] = own->p[(int64_t)c * own->n + c];
  }
  return to_go;
}

static int find_cheapest_weight(const scratch *own) {
  double least = INFINITY;
  int found = -1;
  for (int c = 0; c < own->n; c++) {
    if (!own->alive[c] || !own->excess[own->block[c]]) continue;
    const double loss = own->w[c] * own->w[c] / own->diagonal[c];
    if (loss < least || found < 0) {
      least = loss;
      found = c;
    }
  }
  return found;
}

static void remove_weight(scratch *own, int at, double least_diagonal) {
  const int n = own->n;
  double *u = own->u + (int64_t)own->n_pending * n;
  const double pivot = own->diagonal[at], part = own->w[at] / pivot, scale = 1 / sqrt(pivot);
  memcpy(u, own->p + (int64_t)at * n, sizeof *u * (size_t)at);
  for (int c = at; c < n; c++) u[c] = own->p[(int64_t)c * n + at];
  for (int i = 0; i < own->n_pending; i++) {
    const double *earlier = own->u + (int64_t)i * n, factor = earlier[at];
    for (int c = 0; c < n; c++) u[c] -= factor * earlier[c];
  }
  for (int c = 0; c < n; c++) {
    if (!own->alive[c]) u[c] = 0; /* exactly 0: the computed value is 0 only up to rounding */
    own->w[c] -= part * u[c];
    u[c] *= scale;
    own->diagonal[c] = fmax(own->diagonal[c] - u[c] * u[c], least_diagonal);
  }
  own->w[at] = 0;
  own->alive[at] = 0;
  own->excess[own->block[at]]--;
  own->n_pending++;
}

/* Subtracts the pending outer products from the inverse, P - U' U (U: the rows of u), and drops the
 * rows and columns of removed weights. */
static void update_inverse(scratch *own) {
  const int n = own->n;
  int left = 0;
  for (int first = 0; first < n; first += STRIP) {
    const int rows = n - first < STRIP ? n - first : STRIP;
    laci_linear_product(NULL, &(laci_linear_operands){.m = rows,
                                                      .n = first + rows,
                                                      .k = own->n_pending,
                                                      .a_transposed = true,
                                                      .alpha = -1,
                                                      .beta = 1,
                                                      .a = own->u + first,
                                                      .lda = n,
                                                      .b = own->u,
                                                      .ldb = n,
                                                      .c = own->p + (int64_t)first * n,
                                                      .ldc = n});
  }
  for (int c = 0; c < n; c++) left += own->alive[c];
  for (int c = 0, to = 0; c < n; c++) { /* in place: writes never overtake reads */
    if (!own->alive[c]) continue;
    double *row = own->p + (int64_t)to * left;
    const double *old = own->p + (int64_t)c * n;
    for (int d = 0, j = 0; d <= c; d++) {
      if (own->alive[d]) row[j++] = old[d];
    }
    own->w[to] = own->w[c];
    own->diagonal[to] = own->diagonal[c];
    own->column[to] = own->column[c];
    own->block[to] = own->block[c];
    to++;
  }
  memset(own->alive, 1, (size_t)left);
  own->n = left;
  own->n_pending = 0;
}

static void prune_row(const pruning *job, scratch *own, int row) {
  const int columns = job->fit->columns;
  double *weight = job->weight + (int64_t)row * columns;
  uint8_t *mask = job->mask + (int64_t)row * columns;
  for (int to_go = init_scratch_for_row(job, own, weight); to_go > 0; to_go--) {
    remove_weight(own, find_cheapest_weight(own), job->least);
    if (own->n_pending == PENDING && to_go > 1) update_inverse(own);
  }
  memset(weight, 0, sizeof *weight * (size_t)columns);
  memset(mask, 0, (size_t)columns);
  for (int c = 0; c < own->n; c++) {
    if (!own->alive[c]) continue;
    weight[own->column[c]] = own->w[c];
    mask[own->column[c]] = 1;
  }
}

static void prune_rows_of_thread(int64_t begin, int64_t end, void *context) {
  pruning *job = context;
  scratch own = {0};
  (void)begin;
  (void)end;
  if (atomic_load(&job->next) >= job->fit->rows) return;
  if (!alloc_scratch(&own, job->fit)) job->short_of_memory = true;
  while (!job->short_of_memory) {
    const int row = atomic_fetch_add(&job->next, 1);
    if (row >= job->fit->rows) break;
    if (laci_interrupted()) job->interrupted = true;
    if (job->interrupted) break;
    prune_row(job, &own, row);
  }
  free_scratch(&own);
}

static lac_status choose_mask(const laci_score_input *input, uint8_t *mask, double *weight,
                              lac_error *err) {
  const laci_fit *fit = input->fit;
  const size_t n = (size_t)fit->columns;
  double *inverse = laci_alloc(n * n, sizeof *inverse);
  if (!inverse) return laci_fail_memory(err, "the inverse of a layer's sums");
  lac_status st = laci_fit_invert_gram(input, inverse, err);
  if (!st) st = laci_fit_compute_start_weights(input, inverse, weight, err);
  if (!st) {
    pruning job = {.fit = fit, .inverse = inverse, .mask = mask, .weight = weight};
    double trace = 0;
    for (size_t c = 0; c < n; c++) trace += fit->h[c * n + c] + input->damping;
    job.least = 1 / trace;
    laci_pool_for(input->pool, laci_pool_threads(input->pool), 1, prune_rows_of_thread, &job);
    if (job.short_of_memory) st = laci_fail_memory(err, "the inverses of a layer's rows");
    else if (job.interrupted) st = laci_fail(err, LAC_INTERRUPTED, "%s: interrupted", fit->name);
  }
  laci_free(inverse);
  return st;
}

static uint64_t obs_memory_bytes(const laci_fit *fit, int n_threads) {
  const uint64_t n = (uint64_t)fit->columns;
  const uint64_t of_a_thread = n * ((n + PENDING + 2) * sizeof(double) + 3 * sizeof(int) + 1);
  return laci_fit_inverse_memory_bytes(fit) + (uint64_t)n_threads * of_a_thread;
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
    .memory = obs_memory_bytes,
};
