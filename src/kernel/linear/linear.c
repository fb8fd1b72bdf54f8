/* SPDX-License-Identifier: Apache-2.0
 * Divides products, factorizations and solutions into parts for the threads of a pool. The parts
 * depend on the matrices only, and one thread computes each part: results do not depend on the
 * threads. */
#include "kernel/linear/linear.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "base/divide.h"
#include "cpu/pool.h"
#include "kernel/linear/linear_in.h"

enum {
  TILE_ROWS = 128,
  TILE_COLUMNS = 512,
  PANEL = 384,
  ALONE = 768, /* a matrix of at most this many columns is factorized by one thread */
  SIDES = 128
};

static _Atomic bool be_plain;

static const laci_linear_backend *find_backend_in_use(void) {
  return atomic_load_explicit(&be_plain, memory_order_relaxed) ? &laci_linear_plain
                                                               : laci_linear_blas_backend();
}

static int smaller_of(int a, int b) { return a < b ? a : b; }

typedef laci_linear_operands double_operands;
typedef laci_linear_operands_f32 float_operands;
typedef laci_linear_solve_operands double_solve_operands;
typedef laci_linear_solve_operands_f32 float_solve_operands;

#define REAL double
#define OF(name) double_##name
#define OP(name) find_backend_in_use()->name
#include "kernel/linear/shared_text.def"
#undef REAL
#undef OF
#undef OP

#define REAL float
#define OF(name) float_##name
#define OP(name) find_backend_in_use()->name##_f32
#include "kernel/linear/shared_text.def"
#undef REAL
#undef OF
#undef OP

const char *laci_linear_backend_name(void) { return find_backend_in_use()->name(); }

void laci_linear_use_plain(bool plain) { atomic_store(&be_plain, plain); }

void laci_linear_product(laci_pool *pool, const laci_linear_operands *operands) {
  double_multiply(pool, operands);
}

void laci_linear_product_f32(laci_pool *pool, const laci_linear_operands_f32 *operands) {
  float_multiply(pool, operands);
}

int laci_linear_cholesky(laci_pool *pool, double *a, int n) { return double_factorize(pool, a, n); }

int laci_linear_cholesky_f32(laci_pool *pool, float *a, int n) {
  return float_factorize(pool, a, n);
}

void laci_linear_cholesky_solve(laci_pool *pool, const double *l, int n, double *b, int rows) {
  laci_linear_solve_operands all = {.l = l, .b = b, .n = n, .ldl = n, .rows = rows, .ldb = n};
  if (n > 0) laci_pool_for(pool, laci_ceil_div(rows, SIDES), 1, double_solve_rows, &all);
}

void laci_linear_cholesky_solve_f32(laci_pool *pool, const float *l, int n, float *b, int rows) {
  laci_linear_solve_operands_f32 all = {.l = l, .b = b, .n = n, .ldl = n, .rows = rows, .ldb = n};
  if (n > 0) laci_pool_for(pool, laci_ceil_div(rows, SIDES), 1, float_solve_rows, &all);
}

typedef struct inversion {
  const double *l;
  double *inverse;
  int n;
} inversion;

/* Computes rows [first, first + SIDES) of the inverse, from column `first` on: the unit vectors of
 * the right side begin there. Elements left of that column follow from symmetry. */
static void invert_rows(int64_t begin, int64_t end, void *context) {
  const inversion *all = context;
  for (int64_t at = begin; at < end; at++) {
    const int first = (int)at * SIDES;
    const int64_t corner = (int64_t)first * all->n + first;
    const laci_linear_solve_operands sides = {.l = all->l + corner,
                                              .b = all->inverse + corner,
                                              .n = all->n - first,
                                              .ldl = all->n,
                                              .rows = smaller_of(SIDES, all->n - first),
                                              .ldb = all->n};
    for (int i = 0; i < sides.rows; i++) {
      double *row = sides.b + (int64_t)i * all->n;
      memset(row, 0, sizeof *row * (size_t)sides.n);
      row[i] = 1;
    }
    find_backend_in_use()->solve_transposed(&sides);
    find_backend_in_use()->solve(&sides);
  }
}

void laci_linear_inverse(laci_pool *pool, const double *l, int n, double *inverse) {
  inversion all = {.l = l, .inverse = inverse, .n = n};
  laci_pool_for(pool, laci_ceil_div(n, SIDES), 1, invert_rows, &all);
  for (int i = 0; i < n; i++) { /* copies the upper triangle to the lower one, also in diagonal
                                   blocks, where they differ by rounding */
    for (int j = 0; j < i; j++) inverse[(int64_t)i * n + j] = inverse[(int64_t)j * n + i];
  }
}

void laci_linear_symmetric_multiply(const double *a, int n, const double *x, double *y) {
  if (n > 0) find_backend_in_use()->symmetric_times(a, n, x, y);
}
