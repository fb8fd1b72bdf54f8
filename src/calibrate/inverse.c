/* SPDX-License-Identifier: Apache-2.0
 * (H + d I)^-1, and what scores that read it have in common. */
#include "calibrate/inverse_in.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "calibrate/dense_in.h"

enum { MOST_TRIES = 40 };

lac_status laci_fit_inverse(const laci_sums *sums, double *inverse, lac_error *err) {
  const laci_fit *fit = sums->fit;
  const int n = fit->columns;
  double damping = sums->damping;
  for (int tries = 0; tries < MOST_TRIES; tries++, damping *= 10) {
    memcpy(inverse, fit->h, sizeof *inverse * (size_t)n * (size_t)n);
    for (int c = 0; c < n; c++) inverse[(int64_t)c * n + c] += damping;
    if (!laci_dense_inverse(inverse, n)) return LAC_OK;
  }
  return laci_fail(err, LAC_BAD_VALUE, "%s: the sum of products of its inputs has no inverse",
                   fit->name);
}

lac_status laci_fit_start(const laci_sums *sums, const double *inverse, double *start,
                          lac_error *err) {
  const laci_fit *fit = sums->fit;
  const size_t count = (size_t)fit->rows * (size_t)fit->columns;
  if (!fit->k) {
    memcpy(start, fit->weight, sizeof *start * count);
    return LAC_OK;
  }
  double *target = laci_alloc(count, sizeof *target);
  if (!target) return laci_fail_memory(err, "a layer's target");
  laci_fit_target(sums, target);
  laci_dense_product(sums->pool, fit->rows, fit->columns, target, inverse, start);
  laci_free(target);
  return LAC_OK;
}

lac_status laci_fit_inverse_saliency(const laci_sums *sums, double *out, lac_error *err) {
  const laci_fit *fit = sums->fit;
  const int n = fit->columns;
  double *inverse = laci_alloc((size_t)n * (size_t)n, sizeof *inverse);
  if (!inverse) return laci_fail_memory(err, "the inverse of a layer's sums");
  lac_status st = laci_fit_inverse(sums, inverse, err);
  if (!st) st = laci_fit_start(sums, inverse, out, err);
  for (int row = 0; row < fit->rows && !st; row++) {
    double *weight = out + (int64_t)row * n;
    for (int c = 0; c < n; c++) weight[c] = fabs(weight[c]) / sqrt(inverse[(int64_t)c * n + c]);
  }
  laci_free(inverse);
  return st;
}

uint64_t laci_fit_inverse_memory(const laci_fit *fit) {
  const uint64_t n = (uint64_t)fit->columns;
  return (n * n + (fit->k ? n * (uint64_t)fit->rows : 0)) * sizeof(double);
}
