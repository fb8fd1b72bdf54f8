/* SPDX-License-Identifier: Apache-2.0
 * The weights of bilinear resizing with antialiasing, one axis at a time, in integers.
 *
 * The weights of a result pixel form a triangle over the source pixels. It is as wide as the step
 * between two result pixels, but at least as wide as one source pixel. The source pixels under it
 * are averaged with the triangle's heights as weights. Weights are computed in double and kept as
 * 22-bit fractions, which fixes the result to the bit on every machine. */
#include "data/resize_in.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

/** Reserves memory for n elements; old contents may be lost. Returns false if memory is short. */
static bool reserve_elements(void **array, size_t *capacity, size_t n, size_t size) {
  if (n <= *capacity) return true;
  laci_free(*array);
  *array = laci_alloc(n, size);
  *capacity = *array ? n : 0;
  return *array != NULL;
}

void laci_resize_taps_clear(laci_taps *taps) {
  laci_free(taps->spans);
  laci_free(taps->weights);
  laci_free(taps->pairs);
  laci_free(taps->scratch);
  *taps = (laci_taps){0};
}

/** Computes which input pixels contribute to pixel k of the result (span), and their weights.
 * Returns where the next pixel's weights begin. The order of the floating-point operations must not
 * change, since the results depend on it. */
static int32_t *compute_span_weights(laci_taps *taps, laci_tap_span *span, int in, double step,
                                     int64_t k, int32_t *weight) {
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

/** Returns the number of weight pairs for `count` weights, which are padded to whole groups of
 * LACI_TAP_GROUP. */
static size_t count_weight_pairs(int count) {
  return (size_t)((count + LACI_TAP_GROUP - 1) / LACI_TAP_GROUP * LACI_TAP_GROUP / 2);
}

/** Stores the weights of a result pixel in pairs, the form for vector instructions. Returns where
 * the next pixel's pairs begin. */
static laci_tap_pair *store_weight_pairs(laci_tap_span *span, laci_tap_pair *pairs) {
  const uint32_t low = (1U << LACI_TAP_LOW_BITS) - 1;
  size_t n = count_weight_pairs(span->count);
  for (size_t at = 0; at < n; at++) {
    size_t x = 2 * at, count = (size_t)span->count;
    uint32_t a = x < count ? (uint32_t)span->weight[x] : 0;
    uint32_t b = x + 1 < count ? (uint32_t)span->weight[x + 1] : 0;
    pairs[at] = (laci_tap_pair){.high = b >> LACI_TAP_LOW_BITS << 16 | a >> LACI_TAP_LOW_BITS,
                                .low = (b & low) << 16 | (a & low)};
  }
  span->pairs = pairs;
  return pairs + n;
}

lac_status laci_resize_taps_compute(laci_taps *taps, int in, int64_t out, int64_t first, int n,
                                    lac_error *err) {
  double step = (double)in / (double)out;
  size_t most = (size_t)ceil(step > 1 ? step : 1) * 2 + 1; /* limit of the input pixels that
                                                              contribute to a pixel */
  if (!reserve_elements((void **)&taps->spans, &taps->n_spans, (size_t)n, sizeof *taps->spans) ||
      !reserve_elements((void **)&taps->weights, &taps->n_weights, (size_t)n * most,
                        sizeof *taps->weights) ||
      !reserve_elements((void **)&taps->pairs, &taps->n_pairs,
                        (size_t)n * count_weight_pairs((int)most), sizeof *taps->pairs) ||
      !reserve_elements((void **)&taps->scratch, &taps->n_scratch, most, sizeof *taps->scratch)) {
    return laci_fail_memory(err, "resizing an image");
  }
  int32_t *weight = taps->weights;
  laci_tap_pair *pair = taps->pairs;
  for (int k = 0; k < n; k++) {
    weight = compute_span_weights(taps, &taps->spans[k], in, step, first + k, weight);
    pair = store_weight_pairs(&taps->spans[k], pair);
  }
  taps->n = n;
  return LAC_OK;
}
