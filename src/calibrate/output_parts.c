/* SPDX-License-Identifier: Apache-2.0
 * Cuts outputs into parts, so that the numbers of a part have one scale (output_parts_in.h). */
#include "calibrate/output_parts_in.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { MOST_SLICES = 4096 };
/* least_scale_gap: two scales are separate if the root mean squares of neighbouring slices, sorted
 * by these, differ by at least this factor. sum_tolerance: tolerance of sums that should be 1. */
static const double least_scale_gap = 30, sum_tolerance = 1e-3;
/* Rows are logits if in this share of them the softmax has an element above one half. */
static const double decided_share = 0.5;

/* ---- Rows ---- */

typedef struct row_kinds {
  bool probabilities, logarithms, unit;
} row_kinds;

/* Returns which kinds apply to all rows of n elements. */
static row_kinds classify_rows(const float *x, int64_t rows, int64_t n) {
  row_kinds k = {n > 1, n > 1, n > 1};
  for (int64_t r = 0; r < rows && (k.probabilities || k.logarithms || k.unit); r++) {
    double sum = 0, powers = 0, squares = 0;
    bool negative = false, positive = false;
    for (int64_t j = 0; j < n; j++) {
      const double v = (double)x[r * n + j];
      negative = negative || v < -sum_tolerance;
      positive = positive || v > sum_tolerance;
      sum += v;
      powers += exp(fmin(v, 1));
      squares += v * v;
    }
    k.probabilities = k.probabilities && !negative && fabs(sum - 1) < sum_tolerance;
    k.logarithms = k.logarithms && !positive && fabs(powers - 1) < sum_tolerance;
    k.unit = k.unit && fabs(squares - 1) < sum_tolerance;
  }
  return k;
}

/* Returns the logarithm of the sum of exp(x[j]). */
static double log_of_sum_of_powers(const float *x, int64_t n) {
  const double top = (double)x[laci_index_of_largest(x, n)];
  double sum = 0;
  for (int64_t j = 0; j < n; j++) sum += exp((double)x[j] - top);
  return top + log(sum);
}

/* Are the rows logits of classes, for most of which the softmax is decided? Features are not, and
 * the numbers of a regression are few. */
static bool are_rows_logits(const float *x, int64_t rows, int64_t n) {
  enum { LEAST_CLASSES = 8 };
  int64_t decided = 0;
  for (int64_t r = 0; n >= LEAST_CLASSES && r < rows; r++) {
    const float *row = x + r * n;
    const double top = (double)row[laci_index_of_largest(row, n)];
    decided += top - log_of_sum_of_powers(row, n) > log(0.5);
  }
  return (double)decided > decided_share * (double)rows;
}

/* ---- Scales ---- */

static int compare_doubles(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Sorts the slices' sums of squares and finds the two neighbours with the largest ratio (*ratio).
 * Returns the larger of the two sums; 0: no ratio is large enough. */
static double find_widest_scale_gap(const double *squares, int64_t n, double *ratio) {
  double *sorted = laci_alloc((size_t)n + 1, sizeof *sorted), above = 0;
  *ratio = least_scale_gap * least_scale_gap;
  if (!sorted) return 0;
  memcpy(sorted, squares, (size_t)n * sizeof *sorted);
  qsort(sorted, (size_t)n, sizeof *sorted, compare_doubles);
  for (int64_t k = 1; k < n; k++) {
    if (!(sorted[k - 1] > 0) || !(sorted[k] / sorted[k - 1] > *ratio)) continue;
    *ratio = sorted[k] / sorted[k - 1];
    above = sorted[k];
  }
  laci_free(sorted);
  return above;
}

/* Divides the output's slices along one axis into large and small ones: the axis with the widest
 * gap between the scales of its slices. */
static void split_by_scale(const laci_shape *shape, const float *x, laci_output_parts *parts) {
  const int64_t count = laci_shape_count(shape);
  double widest = 0;
  for (int axis = 1; axis < shape->rank; axis++) {
    const int64_t n = shape->dims[axis];
    const int64_t inner = laci_shape_count_range(shape, axis + 1, shape->rank);
    double ratio;
    if (n < 2 || n > MOST_SLICES) continue;
    double *squares = laci_alloc((size_t)n, sizeof *squares);
    if (!squares) return;
    for (int64_t j = 0; j < count; j++) squares[j / inner % n] += (double)x[j] * (double)x[j];
    const double above = find_widest_scale_gap(squares, n, &ratio);
    bool *is_small = above > 0 && ratio > widest ? laci_alloc((size_t)n, sizeof *is_small) : NULL;
    for (int64_t k = 0; is_small && k < n; k++) is_small[k] = squares[k] < above;
    laci_free(squares);
    if (!is_small) continue;
    laci_free(parts->is_small);
    parts->is_small = is_small;
    parts->inner = inner;
    parts->n_slices = n;
    widest = ratio;
  }
}

void laci_output_parts_decide(const laci_shape *shape, const float *x, bool is_product,
                              laci_output_parts *parts) {
  const int64_t count = laci_shape_count(shape);
  parts->row = shape->rank > 0 ? shape->dims[shape->rank - 1] : 1;
  const bool has_rows = shape->rank > 1 && count > 0 && parts->row > 1;
  const row_kinds k = has_rows ? classify_rows(x, count / parts->row, parts->row) : (row_kinds){0};
  /* One row of logits a sample is judged by its answer anyway. */
  parts->logits = !k.probabilities && !k.logarithms && is_product && has_rows && shape->rank > 2 &&
                  are_rows_logits(x, count / parts->row, parts->row);
  parts->answers = k.probabilities || k.logarithms || parts->logits;
  parts->logarithms = k.logarithms && !k.probabilities;
  parts->unit_rows = k.unit && !parts->answers;
  if (!parts->answers && shape->rank > 2) split_by_scale(shape, x, parts);
  parts->n_parts = parts->is_small ? 2 : 1;
}

void laci_output_parts_clear(laci_output_parts *parts) {
  laci_free(parts->is_small);
  *parts = (laci_output_parts){0};
}

/* ---- Sums ---- */

void laci_output_parts_add_errors(const laci_output_parts *parts, const float *const y[2],
                                  int64_t begin, int64_t n, double *e, double *s) {
  for (int64_t r = 0; parts->answers && r < n / parts->row; r++) {
    const int64_t at = begin + r * parts->row;
    e[0] += laci_index_of_largest(y[0] + at, parts->row) !=
            laci_index_of_largest(y[1] + at, parts->row);
    s[0] += 1;
  }
  for (int64_t j = begin; !parts->answers && j < begin + n; j++) {
    const int part = parts->is_small ? parts->is_small[j / parts->inner % parts->n_slices] : 0;
    const double of = (double)y[0][j], difference = of - (double)y[1][j];
    e[part] += difference * difference;
    s[part] += of * of;
  }
}

/* Returns the square of the Hellinger distance between two rows of answers. */
static double squared_hellinger_distance(const laci_output_parts *parts, const float *p,
                                         const float *q) {
  const int64_t n = parts->row;
  double common = 0;
  /* logits are the logarithms of probabilities and a number for the whole row */
  const double more =
      parts->logits ? (log_of_sum_of_powers(p, n) + log_of_sum_of_powers(q, n)) / 2 : 0;
  for (int64_t j = 0; j < n; j++) {
    const double a = (double)p[j], b = (double)q[j];
    common += parts->logarithms || parts->logits ? exp((a + b) / 2 - more)
                                                 : sqrt(fmax(a, 0) * fmax(b, 0));
  }
  return fmax(0, 1 - common);
}

double laci_output_parts_sum_shifts(const laci_output_parts *parts, const float *const y[2],
                                    int64_t begin, int64_t n) {
  double sum = 0;
  for (int64_t at = begin; parts->answers && at < begin + n; at += parts->row)
    sum += squared_hellinger_distance(parts, y[0] + at, y[1] + at);
  return sum;
}

void laci_error_sums_add(laci_error_sums *to, const laci_error_sums *from) {
  to->n += from->n;
  to->e += from->e;
  to->s += from->s;
  to->ee += from->ee;
  to->es += from->es;
  to->ss += from->ss;
}

double laci_error_sums_ratio(const laci_error_sums *sums) {
  return sums->s > 0 ? sums->e / sums->s : sums->e > 0 ? INFINITY : 0;
}

double laci_worst_part_error(const laci_output_difference *d) {
  double worst = d->n_parts > 0 ? 0 : d->relative;
  for (int p = 0; p < d->n_parts; p++)
    worst = fmax(worst, laci_error_sums_ratio(&d->parts[p].sums));
  return worst;
}

double laci_worst_part_shift(const laci_output_difference *d) {
  double worst = d->n_parts > 0 ? 0 : d->relative;
  for (int p = 0; p < d->n_parts; p++) {
    const laci_output_part *part = &d->parts[p];
    const bool answers = part->kind == LACI_OUTPUT_PART_ANSWERS && part->sums.s > 0;
    worst = fmax(worst, answers ? part->shift / part->sums.s : laci_error_sums_ratio(&part->sums));
  }
  return worst;
}
