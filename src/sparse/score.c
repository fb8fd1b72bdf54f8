/* SPDX-License-Identifier: Apache-2.0
 * Computes scores from stored elements: |w - zero| * |scale|, in double. Double holds every
 * supported element exactly (int64 beyond 2^53 is rounded, and no network has such weights). Next:
 * mask.c. */
#include "sparse/score.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/acquire.h"
#include "sparse/mask.h"
#include "tensor/buf.h"
#include "tensor/narrow.h"

enum { INTEGERS_AT_ONCE = 512 };

static bool has_dtype_scores(lac_dtype dtype) {
  return laci_dtype_is_numeric(dtype) && dtype != LAC_DTYPE_BOOL && dtype != LAC_DTYPE_U64;
}

static lac_status check_weight_shape(const laci_weight_view *w, lac_error *err) {
  int64_t count;
  if (w->outer < 0 || w->columns < 0 || w->inner < 0 ||
      __builtin_mul_overflow(w->outer, w->columns, &count) ||
      __builtin_mul_overflow(count, w->inner, &count) || count > INT64_MAX / 8) {
    return laci_fail(err, LAC_BAD_SHAPE, "%s: %lld x %lld x %lld elements are no weight", w->name,
                     (long long)w->outer, (long long)w->columns, (long long)w->inner);
  }
  if (w->columns > 0 && (w->run < 1 || w->columns % w->run)) {
    return laci_fail(err, LAC_BAD_SHAPE, "%s: %lld columns, not a multiple of the run of %lld",
                     w->name, (long long)w->columns, (long long)w->run);
  }
  return LAC_OK;
}

static lac_status check_weight_scales(const laci_weight_view *w, lac_error *err) {
  if (w->n_scales < 0 || (w->n_scales > 0 && w->scale_stride < 1)) {
    return laci_fail(err, LAC_BAD_SHAPE, "%s: %lld scales with stride %lld", w->name,
                     (long long)w->n_scales, (long long)w->scale_stride);
  }
  if (w->n_scales > 0 && (w->scale_block < 0 || (w->scale_block > 0 && w->scale_size < 1))) {
    return laci_fail(err, LAC_BAD_SHAPE, "%s: scales of blocks of %lld along an axis of %lld",
                     w->name, (long long)w->scale_block, (long long)w->scale_size);
  }
  for (int64_t k = 0; k < w->n_scales; k++) {
    double scale = w->scale ? w->scale[k] : 1, zero = w->zero ? w->zero[k] : 0;
    if (!isfinite(scale) || !isfinite(zero)) {
      return laci_fail(err, LAC_BAD_VALUE, "%s: scale or zero point %lld is not finite", w->name,
                       (long long)k);
    }
    if (zero != 0 && laci_dtype_is_float(w->dtype)) {
      return laci_fail(err, LAC_UNSUPPORTED, "%s: a zero point on elements of type %s", w->name,
                       lac_dtype_name(w->dtype));
    }
  }
  return LAC_OK;
}

lac_status laci_weight_acquire(const laci_weight_view *w, laci_weight_view *in_memory,
                               laci_acquired_bytes *held, lac_error *err) {
  const size_t n = (size_t)(w->outer * w->columns * w->inner) * lac_dtype_size(w->dtype);
  lac_status st = laci_bytes_acquire(w->bytes_from, w->bytes, n, w->name, held, err);
  *in_memory = *w;
  in_memory->bytes = held->bytes;
  in_memory->bytes_from = NULL;
  return st;
}

lac_status laci_pattern_check(laci_pattern pattern, lac_error *err) {
  if (pattern.n >= 1 && pattern.n < pattern.m && pattern.m <= LACI_MOST_PATTERN_M) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT, "pattern %d:%d: wanted 1 <= n < m <= %d", pattern.n,
                   pattern.m, LACI_MOST_PATTERN_M);
}

lac_status laci_weight_check(const laci_weight_view *w, laci_pattern pattern, lac_error *err) {
  lac_status st = laci_pattern_check(pattern, err);
  if (st) return st;
  if (!has_dtype_scores(w->dtype)) {
    return laci_fail(err, LAC_UNSUPPORTED, "%s: elements of type %s have no magnitude to score",
                     w->name, lac_dtype_name(w->dtype));
  }
  st = check_weight_shape(w, err);
  return st ? st : check_weight_scales(w, err);
}

/* Returns how many of n elements, beginning with element `first`, share the scale of that one. Sets
 * *k to the scale's index. */
static int64_t count_elements_of_scale(const laci_weight_view *w, int64_t first, int64_t n,
                                       int64_t *k) {
  int64_t left = w->n_scales == 1 ? n : w->scale_stride - first % w->scale_stride;
  *k = laci_scale_index_of(w, first);
  /* consecutive elements either have a scale each, or share it up to the end of the block */
  if (w->scale_block) {
    int64_t place = first % w->scale_size, end = (place / w->scale_block + 1) * w->scale_block;
    left = w->scale_stride > 1 ? 1 : (end < w->scale_size ? end : w->scale_size) - place;
  }
  return left < n ? left : n;
}

static void subtract_zero_points(const laci_weight_view *w, int64_t first, int64_t n, double *out) {
  for (int64_t done = 0; done < n;) {
    int64_t k, length = count_elements_of_scale(w, first + done, n - done, &k);
    double zero = w->zero[k];
    for (int64_t i = done; i < done + length; i++) out[i] -= zero;
    done += length;
  }
}

static void read_integers_minus_zero(const laci_weight_view *w, int64_t first, int64_t n,
                                     double *out) {
  int64_t whole[INTEGERS_AT_ONCE];
  for (int64_t done = 0; done < n; done += INTEGERS_AT_ONCE) {
    int64_t length = n - done < INTEGERS_AT_ONCE ? n - done : INTEGERS_AT_ONCE;
    laci_read_i64(w->dtype, w->bytes, first + done, length, whole);
    for (int64_t i = 0; i < length; i++) out[done + i] = (double)whole[i];
  }
}

/* Sets the scores of elements whose scale is 0 to 0, whatever their stored values are: a scale of 0
 * acts as a mask of its channel. */
static void zero_elements_of_zero_scale(const laci_weight_view *w, int64_t first, int64_t n,
                                        double *out) {
  for (int64_t done = 0; done < n;) {
    int64_t k, length = count_elements_of_scale(w, first + done, n - done, &k);
    for (int64_t i = done; i < done + length && w->scale[k] == 0; i++) out[i] = 0;
    done += length;
  }
}

static void read_elements_minus_zero(const laci_weight_view *w, int64_t first, int64_t n,
                                     double *out) {
  if (laci_dtype_is_float(w->dtype)) laci_read_f64(w->dtype, w->bytes, first, n, out);
  else read_integers_minus_zero(w, first, n, out);
  if (w->n_scales && w->zero) subtract_zero_points(w, first, n, out);
}

void laci_zero_distances_read(const laci_weight_view *w, int64_t first, int64_t n, double *out) {
  read_elements_minus_zero(w, first, n, out);
  if (w->n_scales && w->scale) zero_elements_of_zero_scale(w, first, n, out);
  for (int64_t i = 0; i < n; i++) out[i] = fabs(out[i]);
}

static void multiply_magnitudes_by_scales(const laci_weight_view *w, int64_t first, int64_t n,
                                          double *out) {
  for (int64_t done = 0; done < n;) {
    int64_t k, length = count_elements_of_scale(w, first + done, n - done, &k);
    double scale = fabs(w->scale[k]);
    for (int64_t i = done; i < done + length; i++) out[i] *= scale;
    done += length;
  }
}

/* Returns the value that x, of element e, has after it is quantized and dequantized by the grid; 0
 * if that is a NaN. */
static double quantize_to_grid(const laci_weight_grid *grid, int64_t e, double x) {
  const laci_weight_view *to = &grid->to;
  const int64_t k = laci_scale_index_of(to, e);
  const double zero = to->zero ? to->zero[k] : 0;
  const float quotient =
      (float)laci_float_round(grid->precision, (double)((float)x / (float)to->scale[k]), 0);
  const double level = laci_dtype_is_float(to->dtype)
                           ? laci_float_round(to->dtype, (double)quotient + zero, grid->rounding)
                           : (double)laci_int_quantize(to->dtype, quotient, zero);
  const double y = (level - zero) * to->scale[k];
  return isfinite(y) ? y : 0;
}

/* Reads |w| of n elements, beginning with element `first`, after the scales and the grid were
 * applied. */
static void quantize_magnitudes_to_grid(const laci_weight_view *w, int64_t first, int64_t n,
                                        double *out) {
  const bool scaled = w->n_scales && w->scale;
  read_elements_minus_zero(w, first, n, out);
  for (int64_t i = 0; i < n; i++) {
    const double scale = scaled ? w->scale[laci_scale_index_of(w, first + i)] : 1;
    const double x = w->grid->after_scales ? out[i] * scale : out[i];
    const double y = quantize_to_grid(w->grid, first + i, x);
    out[i] = fabs(w->grid->after_scales ? y : y * scale);
  }
}

void laci_distances_to_scores(const laci_weight_view *w, int64_t first, int64_t n, double *out) {
  if (w->grid) quantize_magnitudes_to_grid(w, first, n, out);
  else if (w->n_scales && w->scale) multiply_magnitudes_by_scales(w, first, n, out);
  for (int64_t i = 0; i < n && w->squared; i++) out[i] *= out[i];
}

void laci_scores_read(const laci_weight_view *w, int64_t first, int64_t n, double *out) {
  if (w->score) {
    for (int64_t i = 0; i < n; i++) out[i] = (double)w->score[first + i];
    for (int64_t i = 0; i < n && w->squared; i++) out[i] *= out[i];
    return;
  }
  laci_zero_distances_read(w, first, n, out);
  laci_distances_to_scores(w, first, n, out);
}

/* Infinities and NaNs have an exponent of all ones. */
#define FIND_LOOP(type, exponent)                                 \
  for (int64_t at = 0; at < n; at++) {                            \
    type bits;                                                    \
    memcpy(&bits, bytes + (size_t)at * sizeof bits, sizeof bits); \
    if ((bits & (exponent)) == (exponent)) return at;             \
  }

int64_t laci_find_first_not_finite(lac_dtype dtype, const uint8_t *bytes, int64_t n) {
  switch (dtype) {
    case LAC_DTYPE_F16: FIND_LOOP(uint16_t, 0x7C00u) break;
    case LAC_DTYPE_BF16: FIND_LOOP(uint16_t, 0x7F80u) break;
    case LAC_DTYPE_F32: FIND_LOOP(uint32_t, 0x7F800000u) break;
    case LAC_DTYPE_F64: FIND_LOOP(uint64_t, 0x7FF0000000000000u) break;
    default:
      for (int64_t at = 0; laci_dtype_is_narrow(dtype) && at < n; at++) {
        if (!isfinite(laci_narrow_value(dtype, bytes[at]))) return at;
      }
  }
  return -1;
}

lac_status laci_fail_not_finite(const laci_weight_view *weight, int64_t at, lac_error *err) {
  double value = 0;
  laci_read_f64(weight->dtype, weight->bytes, at, 1, &value);
  return laci_fail(err, LAC_BAD_VALUE, "%s[%lld]: found %s, wanted a finite number", weight->name,
                   (long long)at,
                   isnan(value) ? "NaN"
                   : value > 0  ? "inf"
                                : "-inf");
}
