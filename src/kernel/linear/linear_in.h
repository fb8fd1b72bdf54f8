/* SPDX-License-Identifier: Apache-2.0
 * The operations that linear.c is built on. Each works on a part of a matrix, in one thread. */
#ifndef LACI_KERNEL_LINEAR_LINEAR_IN_H
#define LACI_KERNEL_LINEAR_LINEAR_IN_H

#include "kernel/linear/linear.h"

/** The operands of a triangular solve: l [n, n], a lower triangular matrix with row stride ldl; b
 * [rows, n], with row stride ldb. Strides are in elements. */
typedef struct laci_linear_solve_operands {
  const double *l;
  double *b;
  int n, ldl, rows, ldb;
} laci_linear_solve_operands;

typedef struct laci_linear_solve_operands_f32 {
  const float *l;
  float *b;
  int n, ldl, rows, ldb;
} laci_linear_solve_operands_f32;

typedef struct laci_linear_backend {
  const char *(*name)(void);
  void (*product)(const laci_linear_operands *p);
  void (*product_f32)(const laci_linear_operands_f32 *p);
  int (*cholesky)(double *a, int n, int lda);
  int (*cholesky_f32)(float *a, int n, int lda);
  /** Replaces rows x by x L'^-1, which computes columns below a diagonal block L of a Cholesky
   * factor. */
  void (*solve_transposed)(const laci_linear_solve_operands *s);
  /** Replaces rows x by x L^-1. */
  void (*solve)(const laci_linear_solve_operands *s);
  void (*solve_transposed_f32)(const laci_linear_solve_operands_f32 *s);
  void (*solve_f32)(const laci_linear_solve_operands_f32 *s);
  void (*symmetric_times)(const double *a, int n, const double *x, double *y);
} laci_linear_backend;

extern const laci_linear_backend laci_linear_plain;
/** Returns the OpenBLAS implementation, or in a build without OpenBLAS the plain one. */
const laci_linear_backend *laci_linear_blas_backend(void);

/** Loads OpenBLAS as dlopen does, with kernels for this processor's instructions even if OpenBLAS
 * does not know its model. A setting of the user's, OPENBLAS_CORETYPE, counts. Once for a process.
 * (blas_core.c) */
void *laci_linear_open_openblas(const char *path);

#endif
