/* SPDX-License-Identifier: Apache-2.0
 * Pads, crops and flips an image in one pass over the rows: row y of the result is row y + top -
 * pad of the image, or black if the image has no such row. */
#include "data/augment.h"

#include <string.h>

#include "base/rng.h"
#include "data/image.h"

/* Number of the random stream of this file; every use of a seed has a stream of its own. */
enum { STREAM_AUGMENT = 0x41554721 };

const char *laci_policy_name(laci_policy_kind kind) {
  static const char *const names[LACI_POLICIES] = {"none", "randaugment", "trivialaugment"};
  return names[kind];
}

bool laci_policy_find(const char *name, laci_policy_kind *kind) {
  for (int k = 0; k < LACI_POLICIES; k++) {
    if (strcmp(name, laci_policy_name((laci_policy_kind)k)) != 0) continue;
    *kind = (laci_policy_kind)k;
    return true;
  }
  return false;
}

laci_augment_draw laci_augment_draw_change(const laci_augment *augment, uint64_t seed,
                                           uint64_t sample) {
  uint64_t n = 2 * (uint64_t)augment->pad + 1;
  laci_augment_draw draw = {0};
  draw.top = (int)laci_rng_integer_below(seed, STREAM_AUGMENT, 3 * sample, n);
  draw.left = (int)laci_rng_integer_below(seed, STREAM_AUGMENT, 3 * sample + 1, n);
  draw.flipped = augment->flip && laci_rng_integer_below(seed, STREAM_AUGMENT, 3 * sample + 2, 2);
  return draw;
}

static void mirror_row(uint8_t *row, int width) {
  for (int left = 0, right = width - 1; left < right; left++, right--) {
    for (int c = 0; c < 3; c++) {
      uint8_t kept = row[left * 3 + c];
      row[left * 3 + c] = row[right * 3 + c];
      row[right * 3 + c] = kept;
    }
  }
}

/** Copies a row of pixels, shifted by `shift` pixels; pixels from outside the image are black. */
static void copy_shifted_row(const uint8_t *from, uint8_t *to, int width, int shift) {
  int first = shift < 0 ? -shift : 0, end = shift > 0 ? width - shift : width;
  memset(to, 0, (size_t)width * 3);
  if (first >= end) return;
  memcpy(to + (size_t)first * 3, from + (size_t)(first + shift) * 3, (size_t)(end - first) * 3);
}

static void crop_and_mirror(const laci_augment_draw *draw, int pad, const laci_image *from,
                            laci_image *to) {
  size_t stride = (size_t)from->width * 3;
  for (int y = 0; y < from->height; y++) {
    int source = y + draw->top - pad;
    uint8_t *row = to->rgb + (size_t)y * stride;
    if (source < 0 || source >= from->height) memset(row, 0, stride);
    else copy_shifted_row(from->rgb + (size_t)source * stride, row, from->width, draw->left - pad);
  }
}

void laci_image_mirror(laci_image *image) {
  for (int y = 0; y < image->height; y++) {
    mirror_row(image->rgb + (size_t)y * (size_t)image->width * 3, image->width);
  }
}

lac_status laci_augment_apply(const laci_augment *augment, const laci_augment_draw *draw,
                              const char *name, laci_image *image, laci_image *spare,
                              lac_error *err) {
  if (draw->top != augment->pad || draw->left != augment->pad) {
    lac_status st = laci_image_set_size(spare, name, image->width, image->height, err);
    if (st) return st;
    crop_and_mirror(draw, augment->pad, image, spare);
    laci_image kept = *image;
    *image = *spare;
    *spare = kept;
  }
  if (draw->flipped) laci_image_mirror(image);
  return LAC_OK;
}
