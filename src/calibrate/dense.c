/* SPDX-License-Identifier: Apache-2.0
 * Products and factors as they are defined. */
#include "calibrate/dense_in.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "cpu/pool.h"

typedef struct product {
  int n;
  const double *a, *b;
  double *out;
} product;

static void multiply_rows(int64_t begin, int64_t end, void *context) {
  const product *p = context;
  for (int64_t row = begin; row < end; row++) {
    double *out = p->out + row * p->n;
    memset(out, 0, sizeof *out * (size_t)p->n);
    for (int i = 0; i < p->n; i++) {
      const double a = p->a[row * p->n + i], *b = p->b + (int64_t)i * p->n;
      for (int j = 0; j < p->n; j++) out[j] += a * b[j];
    }
  }
}

void laci_dense_product(laci_pool *pool, int rows, int n, const double *a, const double *b,
                        double *out) {
  product p = {n, a, b, out};
  laci_pool_for(pool, rows, 8, multiply_rows, &p);
}

int laci_dense_cholesky(double *a, int n) {
  for (int i = 0; i < n; i++) {
    double *row = a + (int64_t)i * n;
    for (int j = 0; j <= i; j++) {
      const double *other = a + (int64_t)j * n;
      double sum = row[j];
      for (int c = 0; c < j; c++) sum -= row[c] * other[c];
      if (j < i) row[j] = sum / other[j];
      else if (sum > 0) row[j] = sqrt(sum);
      else return i + 1;
    }
  }
  return 0;
}

void laci_dense_cholesky_solve(const double *l, int n, double *x) {
  for (int i = 0; i < n; i++) {
    for (int c = 0; c < i; c++) x[i] -= l[(int64_t)i * n + c] * x[c];
    x[i] /= l[(int64_t)i * n + i];
  }
  for (int i = n - 1; i >= 0; i--) {
    x[i] /= l[(int64_t)i * n + i];
    for (int c = 0; c < i; c++) x[c] -= l[(int64_t)i * n + c] * x[i];
  }
}

int laci_dense_inverse(double *a, int n) {
  const int bad = laci_dense_cholesky(a, n);
  if (bad) return bad;
  for (int i = 0; i < n; i++) { /* L^-1 in place, row by row */
    double *row = a + (int64_t)i * n;
    for (int j = 0; j < i; j++) {
      double sum = 0;
      for (int c = j; c < i; c++) sum += row[c] * a[(int64_t)c * n + j];
      row[j] = -sum / row[i];
    }
    row[i] = 1 / row[i];
  }
  for (int i = 0; i < n; i++) { /* A^-1 = L^-T L^-1; row i of it needs L^-1 from row i on */
    for (int j = 0; j <= i; j++) {
      double sum = 0;
      for (int c = i; c < n; c++) sum += a[(int64_t)c * n + i] * a[(int64_t)c * n + j];
      a[(int64_t)j * n + i] = sum;
    }
  }
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < i; j++) a[(int64_t)i * n + j] = a[(int64_t)j * n + i];
  }
  return 0;
}

void laci_dense_subtract(const laci_dense_panel *p) {
  for (int i = 0; i < p->k; i++) {
    const double *b = p->b + (int64_t)i * p->ldb;
    for (int row = 0; row < p->m; row++) {
      const double a = p->a[(int64_t)row * p->lda + i];
      double *c = p->c + (int64_t)row * p->ldc;
      for (int j = 0; j < p->n && a != 0; j++) c[j] -= a * b[j];
    }
  }
}

int laci_dense_cholesky_f32(laci_pool *pool, float *a, int n) {
  (void)pool;
  for (int i = 0; i < n; i++) {
    float *row = a + (int64_t)i * n;
    for (int j = 0; j <= i; j++) {
      const float *other = a + (int64_t)j * n;
      float sum = row[j];
      for (int c = 0; c < j; c++) sum -= row[c] * other[c];
      if (j < i) row[j] = sum / other[j];
      else if (sum > 0) row[j] = sqrtf(sum);
      else return i + 1;
    }
  }
  return 0;
}

typedef struct sides {
  const float *l;
  float *rows;
  int n;
} sides;

static void substitute(int64_t begin, int64_t end, void *context) {
  const sides *s = context;
  const int n = s->n;
  for (int64_t row = begin; row < end; row++) {
    float *x = s->rows + row * n;
    for (int i = 0; i < n; i++) {
      for (int c = 0; c < i; c++) x[i] -= s->l[(int64_t)i * n + c] * x[c];
      x[i] /= s->l[(int64_t)i * n + i];
    }
    for (int i = n - 1; i >= 0; i--) {
      x[i] /= s->l[(int64_t)i * n + i];
      for (int c = 0; c < i; c++) x[c] -= s->l[(int64_t)i * n + c] * x[i];
    }
  }
}

void laci_dense_cholesky_solve_f32(laci_pool *pool, const float *l, int n, float *rows,
                                   int n_rows) {
  sides s = {l, rows, n};
  laci_pool_for(pool, n_rows, 8, substitute, &s);
}
