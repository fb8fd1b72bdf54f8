/* SPDX-License-Identifier: Apache-2.0
 * Draws the regions of region.h. */
#include "data/region.h"

#include <math.h>
#include <stdbool.h>

#include "base/rng.h"

/* STREAM_REGION: number of the random stream of this file; every use of a seed has a stream of its
 * own. A sample's numbers are consecutive in it: DRAWS draws of NUMBERS numbers each. */
enum { STREAM_REGION = 0x5245474E, DRAWS = 10, NUMBERS = 4 };

static const double least_area = 0.08, least_aspect = 3.0 / 4, most_aspect = 4.0 / 3;

/** Returns the random number in [0, 1) with index `number` of draw `draw` for a sample. */
static double draw_unit(uint64_t seed, uint64_t sample, int draw, int number) {
  uint64_t counter = sample * (DRAWS * NUMBERS) + (uint64_t)(draw * NUMBERS + number);
  return laci_rng_unit_interval(seed, STREAM_REGION, counter);
}

static bool try_random_region(uint64_t seed, uint64_t sample, int draw, int width, int height,
                              laci_region *r) {
  double area = (double)width * height, low = log(least_aspect), high = log(most_aspect);
  area *= least_area + (1 - least_area) * draw_unit(seed, sample, draw, 0);
  double aspect = exp(low + (high - low) * draw_unit(seed, sample, draw, 1));
  long long w = llrint(sqrt(area * aspect)), h = llrint(sqrt(area / aspect));
  if (w < 1 || h < 1 || w > width || h > height) return false;
  *r = (laci_region){.width = (int)w, .height = (int)h};
  r->left = (int)(draw_unit(seed, sample, draw, 2) * (double)(width - r->width + 1));
  r->top = (int)(draw_unit(seed, sample, draw, 3) * (double)(height - r->height + 1));
  return true;
}

static laci_region largest_middle_region(int width, int height) {
  laci_region r = {0, 0, width, height};
  double aspect = (double)width / height;
  if (aspect < least_aspect) r.height = (int)llrint(width / least_aspect);
  else if (aspect > most_aspect) r.width = (int)llrint(height * most_aspect);
  if (r.width < 1) r.width = 1;
  if (r.height < 1) r.height = 1;
  r.left = (width - r.width) / 2;
  r.top = (height - r.height) / 2;
  return r;
}

laci_region laci_draw_region(uint64_t seed, uint64_t sample, int width, int height) {
  laci_region r;
  for (int draw = 0; draw < DRAWS; draw++) {
    if (try_random_region(seed, sample, draw, width, height, &r)) return r;
  }
  return largest_middle_region(width, height);
}
