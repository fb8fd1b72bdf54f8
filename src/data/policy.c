/* SPDX-License-Identifier: Apache-2.0
 * The two tables of strengths, and the draws of a sample. */
#include "data/policy.h"

#include <math.h>
#include <stddef.h>

#include "base/rng.h"
#include "data/image.h"

enum { STREAM_POLICY = 0x504F4C49, DRAWS = 64 };

/** The magnitude of each change in the last bin. In the first bin it is 0, except for Posterize and
 * Solarize. */
typedef struct strengths {
  double shear, translate, rotate, blend, posterize;
} strengths;

/* translate: RandAugment moves an image by a fraction of its side, TrivialAugment by a number of
 * pixels. */
static const strengths randaugment = {0.3, 150.0 / 331.0, 30, 0.9, 4};
static const strengths trivialaugment = {0.99, 32, 135, 0.99, 6};

/** Returns the magnitude of a bin, spread evenly from `first` (bin 0) to `last`. The arithmetic is
 * that of torchvision's tables: single precision, one rounding, and the second half counted from
 * the end. */
static double magnitude_of_bin(double first, double last, int bin) {
  const float low = (float)first, high = (float)last;
  const double step = (double)((high - low) / (LACI_POLICY_BINS - 1));
  const double value = bin < LACI_POLICY_BINS / 2
                           ? (double)low + step * bin
                           : (double)high - step * (LACI_POLICY_BINS - 1 - bin);
  return (double)(float)value;
}

double laci_policy_magnitude(laci_policy_kind kind, laci_pixel_change change, int bin, int width,
                             int height) {
  const bool is_wide = kind == LACI_POLICY_TRIVIALAUGMENT;
  const strengths *s = is_wide ? &trivialaugment : &randaugment;
  switch (change) {
    case LACI_PIXELS_SHEAR_X:
    case LACI_PIXELS_SHEAR_Y: return magnitude_of_bin(0, s->shear, bin);
    case LACI_PIXELS_TRANSLATE_X:
      return magnitude_of_bin(0, s->translate * (is_wide ? 1 : width), bin);
    case LACI_PIXELS_TRANSLATE_Y:
      return magnitude_of_bin(0, s->translate * (is_wide ? 1 : height), bin);
    case LACI_PIXELS_ROTATE: return magnitude_of_bin(0, s->rotate, bin);
    case LACI_PIXELS_BRIGHTNESS:
    case LACI_PIXELS_COLOR:
    case LACI_PIXELS_CONTRAST:
    case LACI_PIXELS_SHARPNESS: return magnitude_of_bin(0, s->blend, bin);
    case LACI_PIXELS_POSTERIZE: return 8 - nearbyint(bin / ((LACI_POLICY_BINS - 1) / s->posterize));
    case LACI_PIXELS_SOLARIZE: return magnitude_of_bin(255, 0, bin);
    default: return 0;
  }
}

bool laci_policy_has_sign(laci_pixel_change change) {
  return change >= LACI_PIXELS_SHEAR_X && change <= LACI_PIXELS_SHARPNESS;
}

lac_status laci_policy_apply(const laci_sample_change *of, const char *name, laci_image *image,
                             laci_image *spare, lac_error *err) {
  const laci_policy *policy = &of->augment.policy;
  const uint64_t seed = of->seed;
  const bool is_trivial = policy->kind == LACI_POLICY_TRIVIALAUGMENT;
  const int n = is_trivial ? 1 : policy->n_changes;
  if (policy->kind == LACI_POLICY_NONE) return LAC_OK;
  for (int k = 0; k < n; k++) {
    const uint64_t at = of->sample * DRAWS + 3 * (uint64_t)k;
    const laci_pixel_change change =
        (laci_pixel_change)laci_rng_integer_below(seed, STREAM_POLICY, at, LACI_PIXELS_CHANGES);
    const int bin = is_trivial
                        ? (int)laci_rng_integer_below(seed, STREAM_POLICY, at + 1, LACI_POLICY_BINS)
                        : policy->magnitude;
    double magnitude =
        laci_policy_magnitude(policy->kind, change, bin, image->width, image->height);
    if (laci_policy_has_sign(change) && laci_rng_integer_below(seed, STREAM_POLICY, at + 2, 2)) {
      magnitude = -magnitude;
    }
    lac_status st = laci_pixels_change(change, magnitude, name, image, spare, err);
    if (st) return st;
  }
  return LAC_OK;
}
