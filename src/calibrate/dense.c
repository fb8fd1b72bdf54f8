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
