/* SPDX-License-Identifier: Apache-2.0
 * Bilinear resizing with antialiasing, one axis at a time, in integers.
 *
 * A triangle as wide as the step between two pixels of the result (never narrower than one pixel of
 * the source) slides over the source; what lies under it is averaged. Weights are computed in
 * double and kept as 22-bit fractions, which fixes the result to the bit on every machine. */
#include "data/resize_in.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

/** Room for n elements; old contents do not matter. */
static bool reserve(void **array, size_t *capacity, size_t n, size_t size) {
  if (n <= *capacity) return true;
  laci_free(*array);
  *array = laci_alloc(n, size);
  *capacity = *array ? n : 0;
  return *array != NULL;
}

void laci_taps_clear(laci_taps *taps) {
  laci_free(taps->spans);
  laci_free(taps->weights);
  laci_free(taps->scratch);
  *taps = (laci_taps){0};
}

/** Span and weights of pixel k; returns where the next pixel's weights go. The order of the
 * operations is part of the result. */
static int32_t *set_span(laci_taps *taps, laci_tap_span *span, int in, double step, int64_t k,
                         int32_t *weight) {
  double reach = step > 1 ? step : 1;
  double centre = ((double)k + 0.5) * step;
  double low = centre - reach + 0.5, high = centre + reach + 0.5;
  int first = low < 0 ? 0 : (int)low;
  int end = high > in ? in : (int)high;
  double sum = 0, *w = taps->scratch, per_pixel = 1 / reach;
  int count = end - first;
  for (int x = 0; x < count; x++) {
    double distance = fabs((x + first - centre + 0.5) * per_pixel);
    w[x] = distance < 1 ? 1 - distance : 0;
    sum += w[x];
  }
  for (int x = 0; x < count; x++) {
    double share = sum != 0 ? w[x] / sum : 0;
    weight[x] = (int32_t)(0.5 + share * (1 << LACI_TAP_BITS));
  }
  *span = (laci_tap_span){.first = first, .count = count, .weight = weight};
  return weight + count;
}

lac_status laci_taps_set(laci_taps *taps, int in, int64_t out, int64_t first, int n,
                         lac_error *err) {
  double step = (double)in / (double)out;
  size_t most = (size_t)ceil(step > 1 ? step : 1) * 2 + 1; /* taps of a pixel */
  if (!reserve((void **)&taps->spans, &taps->n_spans, (size_t)n, sizeof *taps->spans) ||
      !reserve((void **)&taps->weights, &taps->n_weights, (size_t)n * most,
               sizeof *taps->weights) ||
      !reserve((void **)&taps->scratch, &taps->n_scratch, most, sizeof *taps->scratch)) {
    return laci_fail_memory(err, "resizing an image");
  }
  int32_t *weight = taps->weights;
  for (int k = 0; k < n; k++) weight = set_span(taps, &taps->spans[k], in, step, first + k, weight);
  taps->n = n;
  return LAC_OK;
}

/** Whole grey levels; a span of thousands of weights may round to a little more than 1 in all. */
static uint8_t grey_of(uint32_t sum) {
  uint32_t grey = sum >> LACI_TAP_BITS;
  return (uint8_t)(grey > 255 ? 255 : grey);
}

static const uint32_t half = 1U << (LACI_TAP_BITS - 1);

void laci_taps_across(const laci_taps *taps, const uint8_t *from, uint8_t *to) {
  for (int k = 0; k < taps->n; k++, to += 3) {
    laci_tap_span span = taps->spans[k];
    const uint8_t *pixel = from + (size_t)span.first * 3;
    uint32_t red = half, green = half, blue = half;
    for (int x = 0; x < span.count; x++, pixel += 3) {
      uint32_t w = (uint32_t)span.weight[x];
      red += w * pixel[0];
      green += w * pixel[1];
      blue += w * pixel[2];
    }
    to[0] = grey_of(red);
    to[1] = grey_of(green);
    to[2] = grey_of(blue);
  }
}

void laci_taps_down(laci_tap_span span, const uint8_t *rows, size_t stride, uint32_t *sums,
                    uint8_t *to) {
  for (size_t x = 0; x < stride; x++) sums[x] = half;
  for (int y = 0; y < span.count; y++) {
    const uint8_t *row = rows + (size_t)(span.first + y) * stride;
    uint32_t w = (uint32_t)span.weight[y];
    for (size_t x = 0; x < stride; x++) sums[x] += w * row[x];
  }
  for (size_t x = 0; x < stride; x++) to[x] = grey_of(sums[x]);
}
