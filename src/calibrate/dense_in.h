/* SPDX-License-Identifier: Apache-2.0
 * Products and factors of dense matrices, row-major, in double. */
#ifndef LACI_CALIBRATE_DENSE_IN_H
#define LACI_CALIBRATE_DENSE_IN_H

typedef struct laci_pool laci_pool;

/** out [rows, n] = a [rows, n] b [n, n]. */
void laci_dense_product(laci_pool *pool, int rows, int n, const double *a, const double *b,
                        double *out);
/** The lower triangle of a [n, n] becomes L, A = L L'. 0, or the column (from 1) where A is not
 * positive definite. */
int laci_dense_cholesky(double *a, int n);
/** x := (L L')^-1 x. */
void laci_dense_cholesky_solve(const double *l, int n, double *x);

/** Lower triangle in, the whole inverse out. 0, or as laci_dense_cholesky. */
int laci_dense_inverse(double *a, int n);

/** c [m, n] -= a [m, k] b [k, n]; rows are lda, ldb, ldc apart. */
typedef struct laci_dense_panel {
  int m, n, k, lda, ldb, ldc;
  const double *a, *b;
  double *c;
} laci_dense_panel;
void laci_dense_subtract(const laci_dense_panel *panel);

/** As laci_dense_cholesky; with its rows shared out. */
int laci_dense_cholesky_f32(laci_pool *pool, float *a, int n);
/** Every row x of rows [n_rows, n]: x := (L L')^-1 x. */
void laci_dense_cholesky_solve_f32(laci_pool *pool, const float *l, int n, float *rows, int n_rows);

#endif
