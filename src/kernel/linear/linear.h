/* SPDX-License-Identifier: Apache-2.0
 * Linear algebra on dense matrices: products, Cholesky factors, and what is solved by them.
 *
 * Row-major; rows of a matrix [n, n] without a distance (lda) are n apart. The work is OpenBLAS's
 * where the library was built with it, else our own plain code; either is called one thread at a
 * time, on parts that do not depend on the number of threads: the same bytes for any pool.
 * Different processors may get different last bits. Next: linear.c (the parts), linear_in.h. */
#ifndef LACI_KERNEL_LINEAR_LINEAR_H
#define LACI_KERNEL_LINEAR_LINEAR_H

#include <stdbool.h>

typedef struct laci_pool laci_pool;

/** "OpenBLAS 0.3.21", "plain". */
const char *laci_linear_name(void);

/** c [m, n] = alpha * A B + beta * c, A [m, k], B [k, n]; a transposed operand is stored as [k, m]
 * or [n, k]. Where beta is 0, c is only written. Rows are lda, ldb, ldc elements apart. */
typedef struct laci_linear_operands {
  int m, n, k, lda, ldb, ldc;
  bool a_transposed, b_transposed;
  double alpha, beta;
  const double *a, *b;
  double *c;
} laci_linear_operands;
void laci_linear_product(laci_pool *pool, const laci_linear_operands *operands);

typedef struct laci_linear_operands_f32 {
  int m, n, k, lda, ldb, ldc;
  bool a_transposed, b_transposed;
  float alpha, beta;
  const float *a, *b;
  float *c;
} laci_linear_operands_f32;
void laci_linear_product_f32(laci_pool *pool, const laci_linear_operands_f32 *operands);

/** Replaces the lower triangle of A, stored in a [n, n], by its Cholesky factor L, A = L L'. The
 * upper triangle is not read; its contents are undefined afterwards. Returns 0, or the number (from
 * 1) of the column at which A is not positive definite; the factor is then incomplete. n may be
 * 0. */
int laci_linear_cholesky(laci_pool *pool, double *a, int n);
int laci_linear_cholesky_f32(laci_pool *pool, float *a, int n);

/** Every row x of b [rows, n]: x := x (L L')^-1. */
void laci_linear_cholesky_solve(laci_pool *pool, const double *l, int n, double *b, int rows);
void laci_linear_cholesky_solve_f32(laci_pool *pool, const float *l, int n, float *b, int rows);

/** inverse [n, n] = (L L')^-1, all of it and symmetric. */
void laci_linear_inverse(laci_pool *pool, const double *l, int n, double *inverse);

/** y [n] = A x, by the lower triangle of A. */
void laci_linear_symmetric_times(const double *a, int n, const double *x, double *y);

/** For tests: our own code from now on, or (false) what is there. */
void laci_linear_be_plain(bool plain);

#endif
