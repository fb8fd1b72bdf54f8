/* SPDX-License-Identifier: Apache-2.0
 * Changes of three kinds: pixels that move by an affine map, levels that go through a table, and
 * blends of the image with a plainer one. Each follows Pillow's arithmetic, in fixed point, double
 * or float as there, so that the bytes are the same. */
#include "data/pixel_change.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "data/image.h"

enum { LEVELS = 256, CHANNELS = 3, FRACTION = 16 };

static const double PI = 3.14159265358979323846;

static size_t count_bytes(const laci_image *image) {
  return (size_t)image->width * (size_t)image->height * CHANNELS;
}

/* ---- Pixels that move ---- */

/** An affine map from the result's pixels to the image's: pixel (x, y) of the result is that at x'
 * = m[0] x + m[1] y + m[2], y' = m[3] x + m[4] y + m[5] of the image, all coordinates being those
 * of the middles of pixels. */
typedef struct affine {
  double m[6];
} affine;

/** Returns the value as a fixed-point number with 16 fractional bits; int64 holds it for all sizes
 * of images. */
static int64_t to_fixed_point(double value) { return (int64_t)floor(ldexp(value, FRACTION) + 0.5); }

static lac_status move_pixels(const affine *map, const char *name, laci_image *image,
                              laci_image *spare, lac_error *err) {
  const double *m = map->m;
  lac_status st = laci_image_set_size(spare, name, image->width, image->height, err);
  if (st) return st;
  memset(spare->rgb, 0, count_bytes(spare));
  int64_t row_x = to_fixed_point(m[2] + m[0] * 0.5 + m[1] * 0.5);
  int64_t row_y = to_fixed_point(m[5] + m[3] * 0.5 + m[4] * 0.5);
  const int64_t across[2] = {to_fixed_point(m[0]), to_fixed_point(m[3])};
  const int64_t down[2] = {to_fixed_point(m[1]), to_fixed_point(m[4])};
  uint8_t *to = spare->rgb;
  for (int row = 0; row < image->height; row++) {
    int64_t at_x = row_x, at_y = row_y;
    for (int column = 0; column < image->width; column++, to += CHANNELS) {
      const int64_t x = at_x >> FRACTION, y = at_y >> FRACTION;
      if (x >= 0 && x < image->width && y >= 0 && y < image->height) {
        memcpy(to, image->rgb + (size_t)(y * image->width + x) * CHANNELS, CHANNELS);
      }
      at_x += across[0];
      at_y += across[1];
    }
    row_x += down[0];
    row_y += down[1];
  }
  const laci_image kept = *image;
  *image = *spare;
  *spare = kept;
  return LAC_OK;
}

/** Returns the angle in radians whose tangent is `slope`, computed through degrees as torchvision
 * does. */
static double compute_shear_angle(double slope) { return atan(slope) * (180 / PI) * (PI / 180); }

/** Rounds to 15 decimals, so that a right angle has a cosine of 0. */
static double round_digits(double value) { return nearbyint(value * 1e15) / 1e15; }

static affine make_rotation(double degrees, const laci_image *image) {
  const double angle = -degrees * (PI / 180), x = image->width / 2.0, y = image->height / 2.0;
  const double c = round_digits(cos(angle)), s = round_digits(sin(angle));
  return (affine){{c, s, c * -x + s * -y + x, -s, c, -s * -x + c * -y + y}};
}

static affine make_affine_map(laci_pixel_change change, double magnitude, const laci_image *image) {
  affine map = {{1, 0, 0, 0, 1, 0}};
  switch (change) {
    case LACI_PIXELS_SHEAR_X: map.m[1] = tan(compute_shear_angle(magnitude)); break;
    case LACI_PIXELS_SHEAR_Y:
      map.m[3] = sin(compute_shear_angle(magnitude)) / cos(compute_shear_angle(magnitude));
      break;
    case LACI_PIXELS_TRANSLATE_X: map.m[2] = -trunc(magnitude); break;
    case LACI_PIXELS_TRANSLATE_Y: map.m[5] = -trunc(magnitude); break;
    default: map = make_rotation(magnitude, image); break;
  }
  return map;
}

/* ---- Grey levels mapped by a table ---- */

static void count_levels(const laci_image *image, int channel, int64_t n[LEVELS]) {
  const size_t n_bytes = count_bytes(image);
  memset(n, 0, LEVELS * sizeof *n);
  for (size_t k = (size_t)channel; k < n_bytes; k += CHANNELS) n[image->rgb[k]]++;
}

static uint8_t clip_level(int64_t level) {
  if (level < 0) return 0;
  return level > LEVELS - 1 ? LEVELS - 1 : (uint8_t)level;
}

/** Fills a table that spreads the grey levels linearly over 0..255. n: number of pixels of each
 * level. False: only one level occurs. */
static bool spread_levels(const int64_t n[LEVELS], uint8_t table[LEVELS]) {
  int low = 0, high = LEVELS - 1;
  while (low < LEVELS && !n[low]) low++;
  while (high >= 0 && !n[high]) high--;
  if (high <= low) return false;
  const double scale = 255.0 / (high - low), offset = -low * scale;
  for (int k = 0; k < LEVELS; k++) table[k] = clip_level((int64_t)(k * scale + offset));
  return true;
}

/** Fills a table that makes all grey levels about equally frequent. n: number of pixels of each
 * level. False: there are too few pixels. */
static bool equalize_levels(const int64_t n[LEVELS], uint8_t table[LEVELS]) {
  int64_t sum = 0, last = 0;
  for (int k = 0; k < LEVELS; k++) {
    sum += n[k];
    if (n[k]) last = n[k];
  }
  const int64_t step = (sum - last) / 255;
  if (step == 0) return false;
  int64_t at = step / 2;
  for (int k = 0; k < LEVELS; k++) {
    table[k] = clip_level(at / step);
    at += n[k];
  }
  return true;
}

/** Fills the table of posterize or solarize, which does not depend on the image. */
static void posterize_or_solarize_levels(laci_pixel_change change, double magnitude,
                                         uint8_t table[LEVELS]) {
  const int bits = (int)magnitude;
  for (int k = 0; k < LEVELS; k++) {
    if (change == LACI_PIXELS_POSTERIZE) table[k] = (uint8_t)(k & ~((1 << (8 - bits)) - 1));
    else table[k] = (uint8_t)(k < magnitude ? k : LEVELS - 1 - k);
  }
}

static void map_levels(laci_pixel_change change, double magnitude, laci_image *image) {
  const size_t n_bytes = count_bytes(image);
  int64_t n[LEVELS];
  uint8_t table[LEVELS];
  for (int c = 0; c < CHANNELS; c++) {
    bool changed = true;
    count_levels(image, c, n);
    if (change == LACI_PIXELS_AUTO_CONTRAST) changed = spread_levels(n, table);
    else if (change == LACI_PIXELS_EQUALIZE) changed = equalize_levels(n, table);
    else posterize_or_solarize_levels(change, magnitude, table);
    if (!changed) continue;
    for (size_t k = (size_t)c; k < n_bytes; k += CHANNELS) image->rgb[k] = table[image->rgb[k]];
  }
}

/* ---- Blends ---- */

/** Returns plain + factor (level - plain), clipped to a byte; factor 1 gives exactly `level`. */
static uint8_t blend_levels(uint8_t plain, uint8_t level, float factor) {
  const float value = (float)plain + factor * (float)(level - plain);
  if (!(value > 0)) return 0;
  return value >= 255 ? 255 : (uint8_t)value;
}

/** Returns a pixel's grey level: the luma of ITU-R 601-2, computed with 16 fractional bits. */
static uint8_t grey_level_of_pixel(const uint8_t *rgb) {
  return (uint8_t)((rgb[0] * 19595U + rgb[1] * 38470U + rgb[2] * 7471U + 0x8000U) >> 16);
}

static uint8_t compute_mean_grey(const laci_image *image) {
  const size_t n_bytes = count_bytes(image);
  uint64_t sum = 0;
  for (size_t k = 0; k < n_bytes; k += CHANNELS) sum += grey_level_of_pixel(image->rgb + k);
  return (uint8_t)((double)sum / (double)(n_bytes / CHANNELS) + 0.5);
}

/** Blends each pixel with black, the image's mean grey, or its own grey level. */
static void blend_plain(laci_pixel_change change, float factor, laci_image *image) {
  const size_t n_bytes = count_bytes(image);
  uint8_t plain = change == LACI_PIXELS_CONTRAST ? compute_mean_grey(image) : 0;
  for (size_t k = 0; k < n_bytes; k += CHANNELS) {
    uint8_t *rgb = image->rgb + k;
    if (change == LACI_PIXELS_COLOR) plain = grey_level_of_pixel(rgb);
    for (int c = 0; c < CHANNELS; c++) rgb[c] = blend_levels(plain, rgb[c], factor);
  }
}

/** Blends the image with a smoothed version: means of 3 x 3 pixels, the middle one with weight 5
 * (of 13). Pixels at the borders stay. */
static lac_status blend_smooth(float factor, const char *name, laci_image *image, laci_image *spare,
                               lac_error *err) {
  lac_status st = laci_image_set_size(spare, name, image->width, image->height, err);
  if (st) return st;
  const size_t stride = (size_t)image->width * CHANNELS;
  memcpy(spare->rgb, image->rgb, count_bytes(image));
  for (int row = 1; row < image->height - 1; row++) {
    for (size_t k = CHANNELS; k + CHANNELS < stride; k++) {
      const uint8_t *at = spare->rgb + (size_t)row * stride + k;
      unsigned sum = 4U * *at;
      for (const uint8_t *line = at - stride; line <= at + stride; line += stride) {
        sum += (unsigned)line[-CHANNELS] + line[0] + line[CHANNELS];
      }
      uint8_t *to = image->rgb + (size_t)row * stride + k;
      *to = blend_levels((uint8_t)((2 * sum + 13) / 26), *at, factor);
    }
  }
  return LAC_OK;
}

lac_status laci_pixels_change(laci_pixel_change change, double magnitude, const char *name,
                              laci_image *image, laci_image *spare, lac_error *err) {
  switch (change) {
    case LACI_PIXELS_SHEAR_X:
    case LACI_PIXELS_SHEAR_Y:
    case LACI_PIXELS_TRANSLATE_X:
    case LACI_PIXELS_TRANSLATE_Y:
    case LACI_PIXELS_ROTATE: {
      const affine map = make_affine_map(change, magnitude, image);
      return move_pixels(&map, name, image, spare, err);
    }
    case LACI_PIXELS_BRIGHTNESS:
    case LACI_PIXELS_COLOR:
    case LACI_PIXELS_CONTRAST: blend_plain(change, (float)(1 + magnitude), image); return LAC_OK;
    case LACI_PIXELS_SHARPNESS:
      return blend_smooth((float)(1 + magnitude), name, image, spare, err);
    case LACI_PIXELS_POSTERIZE:
    case LACI_PIXELS_SOLARIZE:
    case LACI_PIXELS_AUTO_CONTRAST:
    case LACI_PIXELS_EQUALIZE: map_levels(change, magnitude, image); return LAC_OK;
    case LACI_PIXELS_IDENTITY:
    case LACI_PIXELS_CHANGES: break;
  }
  return LAC_OK;
}
