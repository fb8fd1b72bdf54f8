/* SPDX-License-Identifier: Apache-2.0
 * Measures how much two values differ, relative to the first value's own scale. If a network's
 * channels were reordered, its values have the same channels in another order. That order is found
 * channel by channel: each takes the nearest one that is left. */
#include <math.h>
#include <string.h>

#include "api/compare/compare_in.h"
#include "base/error.h"
#include "base/memory.h"
#include "tensor/buf.h"

enum { MOST_CHANNELS = 2048, PLACES = 48 };
static const double SUSPECT = 1e-3; /* if the error is larger, another order of the channels is
                                       tried */

/* A value's shape with one axis singled out: [outer, channels, inner]. */
typedef struct layout {
  int64_t outer, channels, inner;
} layout;

static layout split_shape_at_axis(const laci_shape *shape, int axis) {
  return (layout){laci_shape_count_range(shape, 0, axis), shape->dims[axis],
                  laci_shape_count_range(shape, axis + 1, shape->rank)};
}

static int64_t element_index(layout l, int64_t channel, int64_t k) {
  return (k / l.inner * l.channels + channel) * l.inner + k % l.inner;
}

typedef struct distances {
  double error, largest, scale; /* see the same fields of lac_compare_value */
} distances;

/* Computes error, largest and scale of two values, where channel c of the first value is compared
 * with channel order[c] of the second. order NULL: with channel c. */
static void measure_difference(const laci_buf *a, const laci_buf *b, layout l, const int32_t *order,
                               distances *found) {
  double difference = 0, square = 0, most = 0, scale = 0;
  for (int64_t c = 0; c < l.channels; c++) {
    int64_t other = order ? order[c] : c;
    for (int64_t k = 0; k < l.outer * l.inner; k++) {
      double x = laci_buf_get_f(a, element_index(l, c, k)),
             y = laci_buf_get_f(b, element_index(l, other, k));
      double d = fabs(x - y);
      if (x == y || (isnan(x) && isnan(y))) d = 0;
      if (isnan(d)) d = INFINITY;
      difference += d * d;
      if (isfinite(x)) square += x * x;
      most = fmax(most, d);
      if (isfinite(x)) scale = fmax(scale, fabs(x));
    }
  }
  found->error = difference == 0 ? 0 : square > 0 ? sqrt(difference / square) : INFINITY;
  found->largest = most == 0 ? 0 : scale > 0 ? most / scale : INFINITY;
  found->scale = scale;
}

static double channel_distance(const laci_buf *a, const laci_buf *b, layout l, int64_t from,
                               int64_t to) {
  const int64_t n = l.outer * l.inner, step = n > PLACES ? n / PLACES : 1;
  double sum = 0;
  for (int64_t k = 0; k < n; k += step) {
    double d =
        laci_buf_get_f(a, element_index(l, from, k)) - laci_buf_get_f(b, element_index(l, to, k));
    sum += d * d;
  }
  return sum;
}

/* Finds for each channel of the first value the nearest channel of the second one that is not
 * matched yet. taken: scratch. */
static void match_nearest_channels(const laci_buf *a, const laci_buf *b, layout l, int32_t *order,
                                   bool *taken) {
  memset(taken, 0, (size_t)l.channels * sizeof *taken);
  for (int64_t c = 0; c < l.channels; c++) {
    double best = INFINITY;
    int64_t nearest = -1;
    for (int64_t other = 0; other < l.channels; other++) {
      double d = taken[other] ? INFINITY : channel_distance(a, b, l, c, other);
      if (nearest < 0 ? !taken[other] : d < best) {
        best = d;
        nearest = other;
      }
    }
    order[c] = (int32_t)nearest;
    taken[nearest] = true;
  }
}

/* Tries another order of the channels along an axis, and keeps it where it fits at least twice as
 * well. */
static lac_status try_channel_order(const laci_buf *a, const laci_buf *b, int axis,
                                    lac_compare_value *value, lac_error *err) {
  const layout l = split_shape_at_axis(&a->shape, axis);
  if (l.channels < 2 || l.channels > MOST_CHANNELS || l.outer * l.inner < 1) return LAC_OK;
  int32_t *order = laci_alloc((size_t)l.channels, sizeof *order);
  bool *taken = laci_alloc((size_t)l.channels, sizeof *taken);
  lac_status st = order && taken ? LAC_OK : laci_fail_memory(err, "the comparison");
  if (!st) {
    distances found;
    match_nearest_channels(a, b, l, order, taken);
    measure_difference(a, b, l, order, &found);
    if (found.error <= value->error / 2) {
      value->error = found.error;
      value->largest = found.largest;
      value->reordered = true;
    }
  }
  laci_free(order);
  laci_free(taken);
  return st;
}

lac_status laci_compare_bufs(const laci_buf *a, const laci_buf *b, lac_compare_value *value,
                             lac_error *err) {
  value->rank = a->shape.rank < 8 ? a->shape.rank : 8;
  for (int axis = 0; axis < value->rank; axis++) value->shape[axis] = a->shape.dims[axis];
  value->same_shape = laci_shape_equal(&a->shape, &b->shape) && !a->f == !b->f;
  value->error = value->largest = NAN;
  if (!value->same_shape) return LAC_OK;
  const layout flat = {1, 1, a->count};
  distances found;
  measure_difference(a, b, flat, NULL, &found);
  value->error = found.error;
  value->largest = found.largest;
  value->scale = found.scale;
  if (!(value->error > SUSPECT) || a->shape.rank < 2) return LAC_OK;
  lac_status st = try_channel_order(a, b, 1, value, err);
  if (!st && !value->reordered && a->shape.rank > 2)
    st = try_channel_order(a, b, a->shape.rank - 1, value, err);
  return st;
}
