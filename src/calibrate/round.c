/* SPDX-License-Identifier: Apache-2.0
 * Rounds weights one column after another, those with the largest inputs first. The columns that
 * are not rounded yet make up for what a column loses, as in sparsegpt.c:
 *
 *     w[j:] -= (w_j - q_j) / U_jj * U[j, j:],    (H + d I)^-1 = U' U, U upper triangular
 *
 * (Frantar and others, "GPTQ", ICLR 2023.) Then single weights move to other integers, as long as
 * the error falls. This also sees that pruned weights stay 0, which the columns before them cannot
 * know. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "calibrate/inverse_in.h"
#include "calibrate/round_in.h"
#include "cpu/pool.h"
#include "kernel/linear/linear.h"

enum { PANEL_COLUMNS = 128, ROWS_AT_ONCE = 32, MOST_SWEEPS = 8 };

typedef struct rounding {
  const laci_fit *fit; /* with its columns in the order of rounding */
  const double *start; /* [rows, columns] weights W of least error, which are rounded */
  double damping;
  double most;          /* magnitude of the largest integer */
  const double *factor; /* [columns, columns] upper triangular factor U (top of this file) */
  double *weight;       /* [rows, columns] weights, which become integers */
  double *slope;        /* [rows, columns] (Q - W)(H + d I), for the last step */
} rounding;

static double round_to_grid(const rounding *r, double w) {
  const double q = rint(w);
  return q > r->most ? r->most : q < -r->most ? -r->most : q;
}

static bool is_kept(const rounding *r, int64_t element) { return r->fit->weight[element] != 0; }

/* Rounds the columns [first, end) of a row. lost [end - first]: set to the errors for which the
 * columns from `end` on must still make up. */
static void round_row_in_panel(const rounding *r, int64_t row, int first, int end, double *lost) {
  const int columns = r->fit->columns;
  double *w = r->weight + row * columns;
  for (int c = first; c < end; c++) {
    const double *factor = r->factor + (int64_t)c * columns;
    const double q = is_kept(r, row * columns + c) ? round_to_grid(r, w[c]) : 0;
    const double part = (w[c] - q) / factor[c];
    lost[c - first] = part;
    w[c] = q;
    for (int j = c + 1; j < end; j++) w[j] -= part * factor[j];
  }
}

static void round_rows_by_panels(int64_t begin, int64_t end, void *context) {
  const rounding *r = context;
  const int columns = r->fit->columns;
  double lost[ROWS_AT_ONCE * PANEL_COLUMNS];
  for (int at = 0; at < columns; at += PANEL_COLUMNS) {
    const int next = columns - at < PANEL_COLUMNS ? columns : at + PANEL_COLUMNS;
    for (int64_t row = begin; row < end; row++)
      round_row_in_panel(r, row, at, next, lost + (row - begin) * PANEL_COLUMNS);
    if (next == columns) break;
    laci_linear_product(NULL, &(laci_linear_operands){
                                  .m = (int)(end - begin),
                                  .n = columns - next,
                                  .k = next - at,
                                  .alpha = -1,
                                  .beta = 1,
                                  .a = lost,
                                  .lda = PANEL_COLUMNS,
                                  .b = r->factor + (int64_t)at * columns + next,
                                  .ldb = columns,
                                  .c = r->weight + begin * columns + next,
                                  .ldc = columns,
                              });
  }
}

/* Moves each weight of a row to the integer of least error, the others fixed; false: none moved. */
static bool improve_row(const rounding *r, int64_t row) {
  const int columns = r->fit->columns;
  double *q = r->weight + row * columns, *slope = r->slope + row * columns;
  bool moved = false;
  for (int c = 0; c < columns; c++) {
    if (!is_kept(r, row * columns + c)) continue;
    const double *h = r->fit->h + (int64_t)c * columns;
    const double by = round_to_grid(r, q[c] - slope[c] / (h[c] + r->damping)) - q[c];
    /* a move by half a step changes nothing but for rounding errors, and could go on for ever */
    if (by == 0 || fabs(slope[c]) <= 0.5001 * fabs(by) * (h[c] + r->damping)) continue;
    q[c] += by;
    for (int j = 0; j < columns; j++) slope[j] += by * h[j];
    slope[c] += by * r->damping;
    moved = true;
  }
  return moved;
}

static void improve_rows(int64_t begin, int64_t end, void *context) {
  const rounding *r = context;
  for (int64_t row = begin; row < end; row++) {
    int sweeps = 0;
    while (sweeps < MOST_SWEEPS && improve_row(r, row)) sweeps++;
  }
}

/* Computes r->slope; rest: [rows, columns] memory. */
static void compute_slopes(const rounding *r, laci_pool *pool, double *rest) {
  const laci_fit *fit = r->fit;
  const int64_t count = (int64_t)fit->rows * fit->columns;
  const laci_score_input input = {.fit = fit, .pool = pool};
  for (int64_t at = 0; at < count; at++) rest[at] = r->weight[at] - r->start[at];
  laci_fit_multiply_matrix(&input, rest, fit->h, r->slope);
  for (int64_t at = 0; at < count; at++) r->slope[at] += r->damping * rest[at];
}

/* ---- The order of columns ---- */

typedef struct ranked_column {
  double size; /* sum of the squared inputs */
  int column;
} ranked_column;

static int compare_columns(const void *a, const void *b) {
  const ranked_column *p = a, *q = b;
  if (p->size != q->size) return p->size > q->size ? -1 : 1;
  return (p->column > q->column) - (p->column < q->column);
}

static void rank_columns(const laci_fit *fit, ranked_column *ranked) {
  for (int c = 0; c < fit->columns; c++)
    ranked[c] = (ranked_column){fit->h[(int64_t)c * fit->columns + c], c};
  qsort(ranked, (size_t)fit->columns, sizeof *ranked, compare_columns);
}

/** A fit whose columns are in the order of rounding. */
typedef struct ordered_fit {
  ranked_column *ranked;  /* [columns] the order */
  double *h, *k, *weight; /* those of the fit, in this order; k NULL: the fit has none */
  double *inverse, *start, *rounded, *slope, *rest;
} ordered_fit;

static void order_matrix(const ordered_fit *o, const double *from, size_t n, double *to) {
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < n; j++)
      to[i * n + j] = from[(size_t)o->ranked[i].column * n + (size_t)o->ranked[j].column];
}

static bool ordered_fit_init(const laci_fit *fit, ordered_fit *o) {
  const size_t n = (size_t)fit->columns, count = (size_t)fit->rows * n;
  o->ranked = laci_alloc(n, sizeof *o->ranked);
  o->h = laci_alloc(n * n, sizeof(double));
  o->inverse = laci_alloc(n * n, sizeof(double));
  o->weight = laci_alloc(count, sizeof(double));
  o->rounded = laci_alloc(count, sizeof(double));
  o->slope = laci_alloc(count, sizeof(double));
  o->rest = laci_alloc(count, sizeof(double));
  o->start = laci_alloc(count, sizeof(double));
  if (fit->k) o->k = laci_alloc(n * n, sizeof(double));
  if (!o->ranked || !o->h || !o->inverse || !o->weight || !o->rounded || !o->slope || !o->rest ||
      !o->start || (fit->k && !o->k))
    return false;
  rank_columns(fit, o->ranked);
  order_matrix(o, fit->h, n, o->h);
  if (fit->k) order_matrix(o, fit->k, n, o->k);
  for (size_t at = 0; at < count; at++)
    o->weight[at] = fit->weight[at / n * n + (size_t)o->ranked[at % n].column];
  return true;
}

static void ordered_fit_clear(ordered_fit *o) {
  laci_free(o->ranked);
  laci_free(o->h);
  laci_free(o->k);
  laci_free(o->start);
  laci_free(o->inverse);
  laci_free(o->weight);
  laci_free(o->rounded);
  laci_free(o->slope);
  laci_free(o->rest);
}

uint64_t laci_fit_round_memory_bytes(int64_t rows, int64_t columns) {
  const uint64_t n = (uint64_t)columns, m = (uint64_t)rows;
  return (4 * n * n + 7 * m * n) * sizeof(double);
}

lac_status laci_fit_round(const laci_fit *fit, double most, laci_pool *pool, double *rounded,
                          lac_error *err) {
  const size_t n = (size_t)fit->columns, count = (size_t)fit->rows * n;
  ordered_fit o = {0};
  lac_status st =
      ordered_fit_init(fit, &o) ? LAC_OK : laci_fail_memory(err, "the rounded weights of a layer");
  if (!st) {
    laci_fit ordered = *fit;
    ordered.h = o.h;
    ordered.k = o.k;
    ordered.weight = o.weight;
    const laci_score_input input = {
        .fit = &ordered, .pool = pool, .damping = laci_fit_compute_damping(&ordered)};
    st = laci_fit_invert_gram(&input, o.inverse, err);
    if (!st) st = laci_fit_compute_start_weights(&input, o.inverse, o.start, err);
    if (!st) st = laci_fit_factorize_inverse(&input, o.inverse, err);
    if (!st) {
      rounding r = {&ordered, o.start, input.damping, most, o.inverse, o.rounded, o.slope};
      memcpy(o.rounded, o.start, count * sizeof(double));
      laci_pool_for(pool, fit->rows, ROWS_AT_ONCE, round_rows_by_panels, &r);
      compute_slopes(&r, pool, o.rest);
      laci_pool_for(pool, fit->rows, 1, improve_rows, &r);
    }
  }
  for (size_t at = 0; at < count && !st; at++)
    rounded[at / n * n + (size_t)o.ranked[at % n].column] = o.rounded[at];
  ordered_fit_clear(&o);
  return st;
}
