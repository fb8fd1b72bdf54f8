/* SPDX-License-Identifier: Apache-2.0
 * Computes the formulas of mix.h. A number of Beta(a, a) is x / (x + y), for two numbers x and y of
 * Gamma(a). These are drawn by Marsaglia and Tsang's squeeze, "A simple method for generating gamma
 * variables" (2000): for a >= 1 and d = a - 1/3, d (1 + z / sqrt(9 d))^3 of a normal z is accepted
 * with a probability above 0.95; for a < 1, Gamma(a) = Gamma(a + 1) u^(1/a). */
#include "data/mix.h"

#include <math.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/rng.h"

enum { STREAM_MIXUP = 0x4D495855, MAX_TRIES = 64 };

lac_status laci_labels_smooth(const int32_t *labels, int n, int n_classes, double smoothing,
                              float *rows, lac_error *err) {
  if (!(smoothing >= 0 && smoothing <= 1)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "label smoothing %g, wanted 0 to 1", smoothing);
  }
  float low = (float)(smoothing / n_classes), high = (float)(1 - smoothing + smoothing / n_classes);
  for (int i = 0; i < n; i++) {
    float *row = rows + (size_t)i * (size_t)n_classes;
    if (labels[i] < 0 || labels[i] >= n_classes) {
      return laci_fail(err, LAC_BAD_VALUE, "label %d, wanted 0 to %d", (int)labels[i],
                       n_classes - 1);
    }
    for (int c = 0; c < n_classes; c++) row[c] = low;
    row[labels[i]] = high;
  }
  return LAC_OK;
}

/** A source of the random numbers of one training step; `at` is the index of the next one in its
 * stream. */
typedef struct draws {
  uint64_t seed, at;
} draws;

/** Returns a number in (0, 1], whose logarithm is finite. */
static double draw_unit(draws *d) {
  return 1 - laci_rng_unit_interval(d->seed, STREAM_MIXUP, d->at++);
}

static double draw_normal(draws *d) {
  double radius = sqrt(-2 * log(draw_unit(d)));
  return radius * cos(6.283185307179586 * draw_unit(d));
}

/** Returns the logarithm of a Gamma draw, since for a small alpha the value itself is often too
 * small for a double. */
static double draw_log_gamma(draws *d, double alpha) {
  double boost = 0, shape = alpha;
  if (alpha < 1) {
    boost = log(draw_unit(d)) / alpha;
    shape = alpha + 1;
  }
  double size = shape - 1.0 / 3, width = 1 / sqrt(9 * size);
  double cube = 1; /* after 64 rejections in a row, which do not happen in practice, the mode is
                      used */
  for (int k = 0; k < MAX_TRIES; k++) {
    double z = draw_normal(d), u = draw_unit(d), root = 1 + width * z;
    if (root <= 0) continue;
    double v = root * root * root;
    if (log(u) >= 0.5 * z * z + size * (1 - v + log(v))) continue;
    cube = v;
    break;
  }
  return boost + log(size * cube);
}

double laci_mixup_draw_weight(uint64_t seed, uint64_t step, double alpha) {
  draws d = {seed, step * 1024}; /* 1024 is more random numbers than both Gamma draws can use */
  if (!(alpha > 0)) return 1;
  double first = draw_log_gamma(&d, alpha), second = draw_log_gamma(&d, alpha);
  return 1 / (1 + exp(second - first));
}

void laci_mixup_blend_items(double share, float *items, int n, size_t size) {
  const float a = (float)share, b = (float)(1 - share);
  for (int i = 0; i < n / 2; i++) { /* in a batch of odd size, the middle item does not change */
    float *first = items + (size_t)i * size, *second = items + (size_t)(n - 1 - i) * size;
    for (size_t k = 0; k < size; k++) {
      float x = first[k], y = second[k];
      first[k] = a * x + b * y;
      second[k] = a * y + b * x;
    }
  }
}
