/* SPDX-License-Identifier: Apache-2.0
 * The operations that linear.c is built on: those on a part, by one thread. */
#ifndef LACI_KERNEL_LINEAR_LINEAR_IN_H
#define LACI_KERNEL_LINEAR_LINEAR_IN_H

#include "kernel/linear/linear.h"

/** Lower triangular factors l [n, n] with rows ldl apart; b [rows, n] with rows ldb apart. */
typedef struct laci_linear_sides {
  const double *l;
  double *b;
  int n, ldl, rows, ldb;
} laci_linear_sides;

typedef struct laci_linear_sides_f32 {
  const float *l;
  float *b;
  int n, ldl, rows, ldb;
} laci_linear_sides_f32;

typedef struct laci_linear_backend {
  const char *(*name)(void);
  void (*product)(const laci_linear_operands *p);
  void (*product_f32)(const laci_linear_operands_f32 *p);
  int (*cholesky)(double *a, int n, int lda);
  int (*cholesky_f32)(float *a, int n, int lda);
  /** Rows x := x L'^-1 (as columns of a block below L are made), and x := x L^-1. */
  void (*solve_transposed)(const laci_linear_sides *s);
  void (*solve)(const laci_linear_sides *s);
  void (*solve_transposed_f32)(const laci_linear_sides_f32 *s);
  void (*solve_f32)(const laci_linear_sides_f32 *s);
  void (*symmetric_times)(const double *a, int n, const double *x, double *y);
} laci_linear_backend;

extern const laci_linear_backend laci_linear_plain;
/** OpenBLAS; in a build without it the plain implementation. */
const laci_linear_backend *laci_linear_blas(void);

#endif
