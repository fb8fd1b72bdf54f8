/* SPDX-License-Identifier: Apache-2.0
 * Computes the weights under a mask that change a layer's outputs least.
 *
 * For a row with support s the error is a quadratic form in w[s], least at
 *
 *     w[s] A[s, s] = G[s],    A = H + d I
 *
 * Rows are sorted by their masks, so that those with the same support are neighbours and share one
 * Cholesky factor; such a group of rows is one task of a thread. Each thread has its own memory, a
 * scratch, and processes groups one by one; results do not depend on which thread gets which group.
 *
 * A large support is factorized in float, which is three times as fast, A scaled to a unit
 * diagonal; w is then refined, w += (L L')^-1 (G[s] - w A[s, s]) with the bracket in double, until
 * the bracket is small enough. If it does not become small, A is too near to singular for float,
 * and is factorized in double. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "calibrate/fit.h"
#include "calibrate/score_in.h"
#include "calibrate/solve_in.h"
#include "cpu/pool.h"
#include "kernel/linear/linear.h"

enum {
  FLOAT_FROM = 512, /* supports (sets of kept columns) of at least this size are factorized in float
                       instead of double */
  MOST_STEPS = 12,
  MOST_TRIES = 40
}; /* limit of the tries, each with 10 times the damping d; the last one adds 1e40 d, which makes H
      negligible */

static const double RESIDUAL = 1e-8; /* the refinement ends when the residual is below this fraction
                                        of the right-hand side's largest element */

typedef struct sorted_row {
  const uint8_t *mask;
  int columns, row;
} sorted_row;

/** The rows sorted[begin, end), which have the same support (set of kept columns). */
typedef struct support_group {
  int begin, end;
} support_group;

typedef struct solver {
  const laci_score_input *input;
  const uint8_t *mask;
  double *weight; /* [rows, columns] at first the right-hand sides G; they are replaced by the
                     solution */
  sorted_row *sorted;
  support_group *groups;
  int n_groups, most_support;
  _Atomic int next; /* index of the next group to be processed */
  _Atomic bool short_of_memory, interrupted;
} solver;

/** The memory of one thread for solving a row with n kept columns. The last four arrays are only
 * for large n. */
typedef struct scratch {
  int *support;   /* [n] indices of the kept columns (s in the comments below) */
  double *matrix; /* [n, n] the damped Gram matrix of the kept columns, A[s, s]: lower triangle,
                     overwritten by its Cholesky factor */
  double *side;   /* [n] right-hand side of the row's linear system, G[s] */
  double *answer; /* [n] solution w[s] */
  double *rest;   /* [n] residual of the linear system: side - answer * A[s, s] */
  double *scale;  /* [n] 1 / sqrt of the diagonal of A[s, s], which scales the system to a unit
                     diagonal */
  float *factor;  /* [n, n] Cholesky factor in float of A[s, s], scaled to a unit diagonal */
  float *step;    /* [n] correction of the solution in one step of the refinement */
} scratch;

/* ---- groups of rows with the same mask ---- */

static int compare_rows_by_mask(const void *a, const void *b) {
  const sorted_row *x = a, *y = b;
  const int order = memcmp(x->mask, y->mask, (size_t)x->columns);
  return order ? order : (x->row > y->row) - (x->row < y->row);
}

static int count_kept(const uint8_t *mask, int columns) {
  int n = 0;
  for (int c = 0; c < columns; c++) n += mask[c] != 0;
  return n;
}

/** Sorts the rows by their masks and divides them into groups with equal masks. */
static void group_rows_by_mask(solver *s) {
  const laci_fit *fit = s->input->fit;
  for (int row = 0; row < fit->rows; row++) {
    s->sorted[row] = (sorted_row){s->mask + (int64_t)row * fit->columns, fit->columns, row};
  }
  qsort(s->sorted, (size_t)fit->rows, sizeof *s->sorted, compare_rows_by_mask);
  for (int at = 0; at < fit->rows; at++) {
    const uint8_t *mask = s->sorted[at].mask;
    if (!at || memcmp(mask, s->sorted[at - 1].mask, (size_t)fit->columns) != 0) {
      const int n = count_kept(mask, fit->columns);
      if (n > s->most_support) s->most_support = n;
      s->groups[s->n_groups++].begin = at;
    }
    s->groups[s->n_groups - 1].end = at + 1;
  }
}

/* ---- one group ---- */

static void gather_support_matrix(const solver *s, const int *support, int n, double damping,
                                  double *a) {
  const laci_fit *fit = s->input->fit;
  for (int i = 0; i < n; i++) {
    const double *h = fit->h + (int64_t)support[i] * fit->columns;
    double *row = a + (int64_t)i * n;
    for (int j = 0; j <= i; j++) row[j] = h[support[j]];
    row[i] += damping;
  }
}

/* Computes the Cholesky factor of the damped Gram matrix of the kept columns. It is positive
 * definite unless the rounding of the Gram matrix exceeds the damping, which is then raised. */
static void factorize_support(const solver *s, const int *support, int n, double *factor) {
  double damping = s->input->damping;
  gather_support_matrix(s, support, n, damping, factor);
  for (int tries = 0; laci_linear_cholesky(NULL, factor, n) && tries < MOST_TRIES; tries++) {
    damping *= 10;
    gather_support_matrix(s, support, n, damping, factor);
  }
}

static bool factorize_support_in_float(const scratch *own, int n) {
  for (int i = 0; i < n; i++) {
    const double *from = own->matrix + (int64_t)i * n;
    float *to = own->factor + (int64_t)i * n;
    own->scale[i] = 1 / sqrt(from[i]);
    for (int j = 0; j < i; j++) to[j] = (float)(from[j] * own->scale[i] * own->scale[j]);
    to[i] = 1;
  }
  return laci_linear_cholesky_f32(NULL, own->factor, n) == 0;
}

static double largest_magnitude(const double *x, int n) {
  double most = 0;
  for (int i = 0; i < n; i++) most = fmax(most, fabs(x[i]));
  return most;
}

/* Computes own->answer from own->side by the factor in float, and refines it. False: the residual
 * did not become small enough. */
static bool refine_solution(const scratch *own, int n) {
  const double wanted = RESIDUAL * largest_magnitude(own->side, n);
  double before = INFINITY;
  memset(own->answer, 0, sizeof *own->answer * (size_t)n);
  memcpy(own->rest, own->side, sizeof *own->rest * (size_t)n);
  for (int step = 0; step < MOST_STEPS; step++) {
    const double most = largest_magnitude(own->rest, n);
    if (most <= wanted) return true;
    if (!(most < 0.5 * before)) return false;
    before = most;
    for (int i = 0; i < n; i++) own->step[i] = (float)(own->rest[i] / most * own->scale[i]);
    laci_linear_cholesky_solve_f32(NULL, own->factor, n, own->step, 1);
    for (int i = 0; i < n; i++) own->answer[i] += (double)own->step[i] * most * own->scale[i];
    laci_linear_symmetric_multiply(own->matrix, n, own->answer, own->rest);
    for (int i = 0; i < n; i++) own->rest[i] = own->side[i] - own->rest[i];
  }
  return false;
}

static void solve_rows_of_group(const solver *s, const support_group *group, const scratch *own,
                                int n) {
  const int columns = s->input->fit->columns;
  bool in_float = false, factorized = false;
  if (n >= FLOAT_FROM) {
    gather_support_matrix(s, own->support, n, s->input->damping, own->matrix);
    in_float = factorize_support_in_float(own, n);
  }
  for (int at = group->begin; at < group->end; at++) {
    double *weight = s->weight + (int64_t)s->sorted[at].row * columns;
    for (int i = 0; i < n; i++) own->side[i] = weight[own->support[i]];
    memset(weight, 0, sizeof *weight * (size_t)columns);
    if (!n) continue;
    if (in_float) in_float = refine_solution(own, n);
    if (!in_float) {
      if (!factorized) factorize_support(s, own->support, n, own->matrix);
      factorized = true;
      memcpy(own->answer, own->side, sizeof *own->answer * (size_t)n);
      laci_linear_cholesky_solve(NULL, own->matrix, n, own->answer, 1);
    }
    for (int i = 0; i < n; i++) weight[own->support[i]] = own->answer[i];
  }
}

static void solve_support_group(const solver *s, const support_group *group, const scratch *own) {
  const uint8_t *mask = s->sorted[group->begin].mask;
  int n = 0;
  for (int c = 0; c < s->input->fit->columns; c++) {
    if (mask[c]) own->support[n++] = c;
  }
  solve_rows_of_group(s, group, own, n);
}

static bool alloc_scratch(scratch *own, int most) {
  const size_t n = (size_t)most;
  own->support = laci_alloc(n, sizeof *own->support);
  own->matrix = laci_alloc(n * n, sizeof *own->matrix);
  own->side = laci_alloc(n, sizeof *own->side);
  own->answer = laci_alloc(n, sizeof *own->answer);
  if (!own->support || !own->matrix || !own->side || !own->answer) return false;
  if (most < FLOAT_FROM) return true;
  own->rest = laci_alloc(n, sizeof *own->rest);
  own->scale = laci_alloc(n, sizeof *own->scale);
  own->factor = laci_alloc(n * n, sizeof *own->factor);
  own->step = laci_alloc(n, sizeof *own->step);
  return own->rest && own->scale && own->factor && own->step;
}

static void free_scratch(scratch *own) {
  laci_free(own->support);
  laci_free(own->matrix);
  laci_free(own->side);
  laci_free(own->answer);
  laci_free(own->rest);
  laci_free(own->scale);
  laci_free(own->factor);
  laci_free(own->step);
}

static void solve_groups_of_thread(int64_t begin, int64_t end, void *context) {
  solver *s = context;
  scratch own = {0};
  (void)begin;
  (void)end;
  if (atomic_load(&s->next) >= s->n_groups) return;
  if (!alloc_scratch(&own, s->most_support)) s->short_of_memory = true;
  while (!s->short_of_memory) {
    const int at = atomic_fetch_add(&s->next, 1);
    if (at >= s->n_groups) break;
    if (laci_interrupted()) s->interrupted = true;
    if (s->interrupted) break;
    solve_support_group(s, &s->groups[at], &own);
  }
  free_scratch(&own);
}

lac_status laci_fit_solve_weights(const laci_fit *fit, const uint8_t *mask, laci_pool *pool,
                                  double *weight, lac_error *err) {
  lac_status st = laci_fit_check_input(fit, true, err);
  if (st) return st;
  const laci_score_input input = {
      .fit = fit, .pool = pool, .damping = laci_fit_compute_damping(fit)};
  solver s = {.input = &input, .mask = mask, .weight = weight};
  s.sorted = laci_alloc((size_t)fit->rows, sizeof *s.sorted);
  s.groups = laci_alloc((size_t)fit->rows, sizeof *s.groups);
  if (s.sorted && s.groups) {
    laci_fit_compute_target(&input, weight);
    group_rows_by_mask(&s);
    laci_pool_for(pool, laci_pool_threads(pool), 1, solve_groups_of_thread, &s);
  } else {
    s.short_of_memory = true;
  }
  if (s.short_of_memory) st = laci_fail_memory(err, "a layer's exact weights");
  else if (s.interrupted) st = laci_fail(err, LAC_INTERRUPTED, "%s: interrupted", fit->name);
  laci_free(s.sorted);
  laci_free(s.groups);
  return st;
}

uint64_t laci_fit_solve_memory_bytes(const laci_fit *fit, int n_threads) {
  uint64_t n = 0;
  const int n_blocks = laci_fit_count_blocks(fit);
  for (int at = 0; at < n_blocks; at++) {
    const int b = laci_fit_find_block(fit, at).n_columns;
    n += (uint64_t)(b < fit->pattern.n ? b : fit->pattern.n);
  }
  uint64_t of_a_thread = n * ((n + 2) * sizeof(double) + sizeof(int));
  if (n >= FLOAT_FROM) of_a_thread += n * ((n + 1) * sizeof(float) + 2 * sizeof(double));
  return (uint64_t)fit->rows * (sizeof(sorted_row) + sizeof(support_group)) +
         (uint64_t)n_threads * of_a_thread;
}
