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

#endif
