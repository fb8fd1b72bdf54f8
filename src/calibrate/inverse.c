/* SPDX-License-Identifier: Apache-2.0
 * Inverts H + d I, and computes what several scores need of the inverse. */
#include "calibrate/inverse_in.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "kernel/linear/linear.h"

enum { MOST_TRIES = 40 };

lac_status laci_fit_invert_gram(const laci_score_input *input, double *inverse, lac_error *err) {
  const laci_fit *fit = input->fit;
  const size_t n = (size_t)fit->columns;
  double damping = input->damping, *factor = laci_alloc(n * n, sizeof *factor);
  lac_status st = LAC_OK;
  if (!factor) return laci_fail_memory(err, "a factor of a layer's sums");
  for (int tries = 0;; tries++, damping *= 10) {
    memcpy(factor, fit->h, sizeof *factor * n * n);
    for (size_t c = 0; c < n; c++) factor[c * n + c] += damping;
    if (!laci_linear_cholesky(input->pool, factor, fit->columns)) break;
    if (tries < MOST_TRIES) continue;
    st = laci_fail(err, LAC_BAD_VALUE, "%s: the sum of products of its inputs has no inverse",
                   fit->name);
    break;
  }
  if (!st) laci_linear_inverse(input->pool, factor, fit->columns, inverse);
  laci_free(factor);
  return st;
}

/* Transposes the lower triangular factor of the inverse in place, which gives U with U' U =
 * inverse. */
static void transpose_lower(double *a, int n) {
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < i; j++) {
      a[(int64_t)j * n + i] = a[(int64_t)i * n + j];
      a[(int64_t)i * n + j] = 0;
    }
  }
}

lac_status laci_fit_factorize_inverse(const laci_score_input *input, double *inverse,
                                      lac_error *err) {
  const int n = input->fit->columns;
  if (laci_linear_cholesky(input->pool, inverse, n))
    return laci_fail(err, LAC_BAD_VALUE, "%s: the inverse of its sums of products has no factor",
                     input->fit->name);
  transpose_lower(inverse, n);
  return LAC_OK;
}

lac_status laci_fit_compute_start_weights(const laci_score_input *input, const double *inverse,
                                          double *start, lac_error *err) {
  const laci_fit *fit = input->fit;
  const size_t count = (size_t)fit->rows * (size_t)fit->columns;
  if (!fit->k) {
    memcpy(start, fit->weight, sizeof *start * count);
    return LAC_OK;
  }
  double *target = laci_alloc(count, sizeof *target);
  if (!target) return laci_fail_memory(err, "a layer's target");
  laci_fit_compute_target(input, target);
  laci_fit_multiply_matrix(input, target, inverse, start);
  laci_free(target);
  return LAC_OK;
}

lac_status laci_fit_compute_obs_saliency(const laci_score_input *input, double *out,
                                         lac_error *err) {
  const laci_fit *fit = input->fit;
  const int n = fit->columns;
  double *inverse = laci_alloc((size_t)n * (size_t)n, sizeof *inverse);
  if (!inverse) return laci_fail_memory(err, "the inverse of a layer's sums");
  lac_status st = laci_fit_invert_gram(input, inverse, err);
  if (!st) st = laci_fit_compute_start_weights(input, inverse, out, err);
  for (int row = 0; row < fit->rows && !st; row++) {
    double *weight = out + (int64_t)row * n;
    for (int c = 0; c < n; c++) weight[c] = fabs(weight[c]) / sqrt(inverse[(int64_t)c * n + c]);
  }
  laci_free(inverse);
  return st;
}

uint64_t laci_fit_inverse_memory_bytes(const laci_fit *fit) {
  const uint64_t n = (uint64_t)fit->columns;
  return (2 * n * n + (fit->k ? n * (uint64_t)fit->rows : 0)) * sizeof(double);
}
