/* SPDX-License-Identifier: Apache-2.0
 * Linear algebra on dense matrices: products, Cholesky factors, and solutions by these.
 *
 * Matrices are row-major; where no distance of rows (lda) is given, rows of a matrix [n, n] are n
 * elements apart. OpenBLAS computes if the library was built with it, otherwise our own plain code.
 * Either runs single-threaded on parts that do not depend on the number of threads: results are the
 * same bytes for any pool. Different processors may get different last bits. Read next: linear.c
 * (the parts), linear_in.h. */
#ifndef LACI_KERNEL_LINEAR_LINEAR_H
#define LACI_KERNEL_LINEAR_LINEAR_H

#include <stdbool.h>

typedef struct laci_pool laci_pool;

/** Returns the name of the implementation in use: "OpenBLAS 0.3.21" or "plain". */
const char *laci_linear_backend_name(void);

/** The operands of c [m, n] = alpha * A B + beta * c, with A [m, k] and B [k, n]; a transposed
 * operand is stored as [k, m] or [n, k]. Where beta is 0, c is written but not read. lda, ldb,
 * ldc: row strides of a, b and c, in elements. */
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

/** Replaces every row x of b [rows, n] by x (L L')^-1. */
void laci_linear_cholesky_solve(laci_pool *pool, const double *l, int n, double *b, int rows);
void laci_linear_cholesky_solve_f32(laci_pool *pool, const float *l, int n, float *b, int rows);

/** Computes the full symmetric inverse [n, n] = (L L')^-1. */
void laci_linear_inverse(laci_pool *pool, const double *l, int n, double *inverse);

/** Computes y [n] = A x for a symmetric A; reads its lower triangle alone. */
void laci_linear_symmetric_multiply(const double *a, int n, const double *x, double *y);

/** For tests. true: use our own plain code from now on; false: use OpenBLAS again, if it is built
 * in. */
void laci_linear_use_plain(bool plain);

#endif
