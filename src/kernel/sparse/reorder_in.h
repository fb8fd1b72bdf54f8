/* SPDX-License-Identifier: Apache-2.0
 * Divides the work of reorder.h into items. An item is some channels of some places of one image
 * (HWC16N: of 16 images). What a place is depends on the layouts. If one has pixels as SIMD lanes
 * (CHW, PC16P), places are all positions of its long row (window.h), padding included; if both
 * have, those of the target. So 16 places are a vector, even where rows are short. Between other
 * layouts, places are the pixels of the target. */
#ifndef LACI_KERNEL_SPARSE_REORDER_IN_H
#define LACI_KERNEL_SPARSE_REORDER_IN_H

#include <stdbool.h>

#include "kernel/sparse/reorder.h"

enum { LACI_SPARSE_CHUNK = 128 }; /* maximum number of channels, and of places, in an item */

typedef struct laci_sparse_item {
  int64_t image,
      n_images; /* image: index of the first image. n_images: number of images, at most 16; 1 if
                   neither layout is HWC16N */
  int64_t channel, n_channels;
  int64_t place, n_places;
  /* For each place, the offset of its pixel in channel 0, in floats from the beginning of an image
   * block of source and target. Both are -1 if the place is padding, or is not copied. If places
   * are counted along a layout's long row, that layout's array is not used and is 0. */
  int64_t from[LACI_SPARSE_CHUNK], to[LACI_SPARSE_CHUNK];
} laci_sparse_item;

static inline bool laci_sparse_lanes_are_pixels(const laci_sparse_layout *l) {
  return l->format == LACI_FORMAT_CHW || l->format == LACI_FORMAT_PC16P;
}

void laci_sparse_describe_item(const laci_sparse_reorder *r, int64_t index, laci_sparse_item *item);

/** Replaces bits of n_channels consecutive arrays of n words: word i of each becomes
 * (word & keep[i]) | with[i]. The arrays overlap neither keep nor with. */
typedef void laci_sparse_replace_bits(const uint32_t *restrict keep, const uint32_t *restrict with,
                                      int64_t n, float *restrict channels, int64_t n_channels);

#define LACI_SPARSE_REPLACE_BITS_DECLARE(name, level) \
  laci_sparse_replace_bits laci_sparse_replace_bits_##name;
LACI_KERNEL_VARIANTS(LACI_SPARSE_REPLACE_BITS_DECLARE)
#undef LACI_SPARSE_REPLACE_BITS_DECLARE

#endif
