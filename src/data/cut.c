/* SPDX-License-Identifier: Apache-2.0
 * Draws rectangles as torchvision does. For random erasing, area and aspect are tried up to ten
 * times. For CutMix, the rectangle is around a random pixel. */
#include "data/cut.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/rng.h"
#include "data/mix.h"

enum { STREAM_ERASE = 0x45524153, STREAM_CUT = 0x43555458, TRIES = 10, DRAWS = 64 };

static const double LEAST_AREA = 0.02, MOST_AREA = 0.33, LEAST_ASPECT = 0.3, MOST_ASPECT = 3.3;

/** Rounds as Python does: a half is rounded to the even neighbour. */
static int round_half_even(double value) { return (int)nearbyint(value); }

bool laci_erase_rectangle_size(double area, double aspect, laci_plane_sizes sizes, int *height,
                               int *width) {
  const double pixels = area * sizes.height * sizes.width;
  *height = round_half_even(sqrt(pixels * aspect));
  *width = round_half_even(sqrt(pixels / aspect));
  return *height < sizes.height && *width < sizes.width;
}

static void clear_rectangle(const laci_rectangle *cut, laci_plane_sizes sizes, float *image) {
  const size_t n = (size_t)(cut->right - cut->left) * sizeof *image;
  for (int c = 0; c < sizes.channels; c++) {
    for (int row = cut->top; row < cut->bottom; row++) {
      const size_t at = ((size_t)c * (size_t)sizes.height + (size_t)row) * (size_t)sizes.width;
      memset(image + at + cut->left, 0, n);
    }
  }
}

void laci_erase_random_rectangle(uint64_t seed, uint64_t sample, double probability,
                                 laci_plane_sizes sizes, float *image) {
  uint64_t at = sample * DRAWS;
  if (laci_rng_unit_interval(seed, STREAM_ERASE, at++) >= probability) return;
  for (int k = 0; k < TRIES; k++) {
    int height, width;
    const double area =
        LEAST_AREA + (MOST_AREA - LEAST_AREA) * laci_rng_unit_interval(seed, STREAM_ERASE, at++);
    const double turn = laci_rng_unit_interval(seed, STREAM_ERASE, at++);
    const double aspect = exp(log(LEAST_ASPECT) + (log(MOST_ASPECT) - log(LEAST_ASPECT)) * turn);
    if (!laci_erase_rectangle_size(area, aspect, sizes, &height, &width)) continue;
    const int top = (int)laci_rng_integer_below(seed, STREAM_ERASE, at++,
                                                (uint64_t)(sizes.height - height + 1));
    const int left =
        (int)laci_rng_integer_below(seed, STREAM_ERASE, at++, (uint64_t)(sizes.width - width + 1));
    const laci_rectangle cut = {
        .top = top, .left = left, .bottom = top + height, .right = left + width};
    clear_rectangle(&cut, sizes, image);
    return;
  }
}

laci_rectangle laci_cut_rectangle_around(double share, int y, int x, int height, int width) {
  const double half = 0.5 * sqrt(1 - share);
  const int half_height = (int)(half * height), half_width = (int)(half * width);
  laci_rectangle cut = {.top = y > half_height ? y - half_height : 0,
                        .left = x > half_width ? x - half_width : 0,
                        .bottom = y + half_height < height ? y + half_height : height,
                        .right = x + half_width < width ? x + half_width : width};
  cut.share =
      1 - (double)(cut.bottom - cut.top) * (cut.right - cut.left) / ((double)height * width);
  return cut;
}

bool laci_cutmix_is_chosen(uint64_t seed, uint64_t step, double mixup, double cutmix) {
  if (!(cutmix > 0)) return false;
  return !(mixup > 0) || laci_rng_unit_interval(seed, STREAM_CUT, step * DRAWS) < 0.5;
}

laci_rectangle laci_cutmix_draw_rectangle(uint64_t seed, uint64_t step, double alpha, int height,
                                          int width) {
  const uint64_t at = step * DRAWS + 1;
  const double share = laci_mixup_draw_weight(seed ^ STREAM_CUT, step, alpha);
  const int x = (int)laci_rng_integer_below(seed, STREAM_CUT, at, (uint64_t)width);
  const int y = (int)laci_rng_integer_below(seed, STREAM_CUT, at + 1, (uint64_t)height);
  return laci_cut_rectangle_around(share, y, x, height, width);
}

void laci_cutmix_swap_rectangles(const laci_rectangle *cut, laci_plane_sizes sizes, float *images,
                                 int n) {
  const size_t plane = (size_t)sizes.height * (size_t)sizes.width;
  const size_t size = (size_t)sizes.channels * plane;
  for (int i = 0; i < n / 2; i++) { /* in a batch of odd size, the middle image does not change */
    float *first = images + (size_t)i * size, *second = images + (size_t)(n - 1 - i) * size;
    for (int c = 0; c < sizes.channels; c++) {
      for (int row = cut->top; row < cut->bottom; row++) {
        const size_t line = (size_t)c * plane + (size_t)row * (size_t)sizes.width;
        for (size_t k = line + (size_t)cut->left; k < line + (size_t)cut->right; k++) {
          const float kept = first[k];
          first[k] = second[k];
          second[k] = kept;
        }
      }
    }
  }
}
