/* SPDX-License-Identifier: Apache-2.0
 * Chooses scale and zero point for the range of a value, and where the range is clipped.
 *
 * An element x beyond a clipping limit a has the error (x - a)^2. Rounding has the error step^2 /
 * 12 for every element inside the limits, except zeros, which are exact. Both sums are estimated
 * from the histogram. */
#include <math.h>

#include "calibrate/ranges.h"
#include "base/to_int.h"

enum { CUTS = 128, SIGNED_MOST = 127, UNSIGNED_MOST = 255 };
static const double left_out = 1e-4;

static double middle_of_bin(const laci_range *r, int bin) {
  return r->low + ((double)bin + 0.5) * (r->high - r->low) / LACI_RANGE_BINS;
}

/* Returns the scale and zero point that quantize the range [low, high], which contains 0. */
static laci_affine affine_of_range(double low, double high, bool is_signed) {
  laci_affine q = {.least = is_signed ? -SIGNED_MOST : 0,
                   .most = is_signed ? SIGNED_MOST : UNSIGNED_MOST};
  double reach = is_signed ? fmax(-low, high) : high - low;
  q.scale = (float)(reach / q.most);
  if (!(q.scale > 0) || is_signed) return q;
  q.zero = (int)laci_clamp_to_range(rint(-low / (double)q.scale), 0, UNSIGNED_MOST);
  return q;
}

/* Returns the squared error of quantizing the values of the histogram, relative to their sum of
 * squares. */
static double quantization_error(const laci_range *r, const laci_affine *q) {
  double low = (q->least - q->zero) * (double)q->scale,
         high = (q->most - q->zero) * (double)q->scale;
  double rounding = (double)q->scale * (double)q->scale / 12, wrong = 0, energy = 0;
  for (int k = 0; k < LACI_RANGE_BINS; k++) {
    if (!r->bins[k]) continue;
    double x = middle_of_bin(r, k), n = (double)r->bins[k];
    double beyond = x < low ? low - x : x > high ? x - high : 0;
    wrong += n * (beyond > 0 ? beyond * beyond : rounding);
    energy += n * x * x;
  }
  return energy > 0 ? wrong / energy : 0;
}

static laci_affine find_least_error_affine(const laci_range *r, double low, double high,
                                           bool is_signed) {
  laci_affine best = affine_of_range(low, high, is_signed);
  best.error = quantization_error(r, &best);
  for (int cut = 1; cut < CUTS; cut++) {
    double part = 1 - (double)cut / CUTS;
    laci_affine q = affine_of_range(low * part, high * part, is_signed);
    if (!(q.scale > 0)) break;
    q.error = quantization_error(r, &q);
    if (q.error < best.error) best = q;
  }
  return best;
}

/* Narrows the range [*low, *high] by a bin at a time, at the end whose outermost bin has fewer
 * elements. Stops before more than the fraction left_out of all elements is outside. */
static void clip_range_tails(const laci_range *r, double *low, double *high) {
  int64_t may = laci_clamp_to_int64(left_out * (double)(r->n_zeros + r->n_others));
  double width = (r->high - r->low) / LACI_RANGE_BINS;
  int first = 0, last = LACI_RANGE_BINS - 1;
  while (first < last) {
    bool upper = r->bins[last] <= r->bins[first];
    int64_t n = r->bins[upper ? last : first];
    if (n > may) break;
    may -= n;
    if (upper) last--;
    else first++;
  }
  *low = fmin(0, r->low + first * width);
  *high = fmax(0, last == LACI_RANGE_BINS - 1 ? r->high : r->low + (last + 1) * width);
}

static laci_affine choose_affine(const laci_range *r, laci_range_rule rule, bool is_signed) {
  double low = fmin(0, r->low), high = fmax(0, r->high);
  if (rule == LACI_RANGE_MSE) return find_least_error_affine(r, low, high, is_signed);
  if (rule == LACI_RANGE_PERCENTILE) clip_range_tails(r, &low, &high);
  laci_affine q = affine_of_range(low, high, is_signed);
  q.error = quantization_error(r, &q);
  return q;
}

laci_affine laci_range_choose_affine(const laci_range *r, laci_range_rule rule, bool is_signed) {
  laci_affine q = choose_affine(r, rule, is_signed);
  q.low = r->low;
  q.high = r->high;
  return q;
}
