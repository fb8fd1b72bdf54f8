/* SPDX-License-Identifier: Apache-2.0
 * The plain implementation: loops that a compiler vectorizes. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernel/linear/linear_in.h"

enum { DEPTH = 64, WIDTH = 128 };

static int smaller_of(int a, int b) { return a < b ? a : b; }

typedef laci_linear_operands double_operands;
typedef laci_linear_operands_f32 float_operands;
typedef laci_linear_solve_operands double_solve_operands;
typedef laci_linear_solve_operands_f32 float_solve_operands;

#define REAL double
#define ROOT sqrt
#define OF(name) double_##name
#include "kernel/linear/plain_text.def"
#undef REAL
#undef ROOT
#undef OF

#define REAL float
#define ROOT sqrtf
#define OF(name) float_##name
#include "kernel/linear/plain_text.def"
#undef REAL
#undef ROOT
#undef OF

static void symmetric_multiply(const double *a, int n, const double *x, double *y) {
  for (int i = 0; i < n; i++) {
    const double *row = a + (int64_t)i * n;
    double sum = row[i] * x[i];
    for (int j = 0; j < i; j++) {
      sum += row[j] * x[j];
      y[j] += row[j] * x[i];
    }
    y[i] = sum;
  }
}

static const char *backend_name(void) { return "plain"; }

const laci_linear_backend laci_linear_plain = {
    .name = backend_name,
    .product = double_product,
    .product_f32 = float_product,
    .cholesky = double_cholesky,
    .cholesky_f32 = float_cholesky,
    .solve_transposed = double_solve_transposed,
    .solve = double_solve,
    .solve_transposed_f32 = float_solve_transposed,
    .solve_f32 = float_solve,
    .symmetric_times = symmetric_multiply,
};
