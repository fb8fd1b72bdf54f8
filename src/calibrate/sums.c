/* SPDX-License-Identifier: Apache-2.0
 * Computes from a fit's sums what all scores and the solution need: damping, target, errors. */
#include "base/error.h"
#include "base/memory.h"
#include "calibrate/score_in.h"
#include "calibrate/solve_in.h"
#include "kernel/linear/linear.h"

static const double LEAST_DAMPING = 0.01; /* minimum damping, as a fraction of the Gram matrix's
                                             mean diagonal element; published for SparseGPT */
static const double SCARCE = 0.25;        /* with few samples, the damping is this * columns /
                                             positions * the Gram matrix's mean diagonal element */

double laci_fit_compute_damping(const laci_fit *fit) {
  double trace = 0, part = fit->damping;
  for (int c = 0; c < fit->columns; c++) trace += fit->h[(int64_t)c * fit->columns + c];
  if (!(part > 0)) {
    part = SCARCE * fit->columns / fit->positions;
    if (part < LEAST_DAMPING) part = LEAST_DAMPING;
  }
  const double damping = part * trace / fit->columns;
  return damping > 0 ? damping : 1;
}

static void multiply_by_matrix(laci_pool *pool, const laci_fit *fit, const double *weight,
                               const double *matrix, double *out) {
  const int n = fit->columns;
  laci_linear_product(pool, &(laci_linear_operands){.m = fit->rows,
                                                    .n = n,
                                                    .k = n,
                                                    .lda = n,
                                                    .ldb = n,
                                                    .ldc = n,
                                                    .alpha = 1,
                                                    .a = weight,
                                                    .b = matrix,
                                                    .c = out});
}

void laci_fit_multiply_matrix(const laci_score_input *input, const double *weight,
                              const double *matrix, double *out) {
  multiply_by_matrix(input->pool, input->fit, weight, matrix, out);
}

void laci_fit_compute_target(const laci_score_input *input, double *target) {
  const laci_fit *fit = input->fit;
  const int64_t count = (int64_t)fit->rows * fit->columns;
  laci_fit_multiply_matrix(input, fit->weight, fit->k ? fit->k : fit->h, target);
  for (int64_t at = 0; at < count; at++) target[at] += input->damping * fit->weight[at];
  for (int64_t at = 0; fit->c && at < count; at++) target[at] += fit->c[at];
}

/* ---- errors ---- */

static double dot_product(const double *a, const double *b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

lac_status laci_fit_compute_error(const laci_fit *fit, const double *weight, double energy,
                                  laci_pool *pool, double *error, lac_error *err) {
  lac_status st = laci_fit_check_input(fit, true, err);
  if (st) return st;
  const int64_t count = (int64_t)fit->rows * fit->columns;
  double *rest = NULL, *product = laci_alloc((size_t)count, sizeof *product);
  if (!fit->k) rest = laci_alloc((size_t)count, sizeof *rest);
  if (!product || (!fit->k && !rest)) {
    st = laci_fail_memory(err, "a layer's error");
    goto out;
  }
  if (rest) { /* H and K are equal: computed from the difference of the weights, so that nothing
                 cancels */
    for (int64_t at = 0; at < count; at++) rest[at] = weight[at] - fit->weight[at];
    multiply_by_matrix(pool, fit, rest, fit->h, product);
    *error = dot_product(rest, product, count);
  } else {
    multiply_by_matrix(pool, fit, fit->weight, fit->k, product);
    double cross = dot_product(weight, product, count);
    if (fit->c) cross += dot_product(weight, fit->c, count);
    multiply_by_matrix(pool, fit, weight, fit->h, product);
    *error = energy - 2 * cross + dot_product(weight, product, count);
  }
  if (*error < 0) *error = 0; /* it can be negative by rounding */
out:
  laci_free(rest);
  laci_free(product);
  return st;
}
