/* SPDX-License-Identifier: Apache-2.0
 * How the work of reorder.h is divided into items. An item is some channels of some places of an
 * image, or of 16 images. If a layout has pixels as SIMD lanes (CHW, PC16P; if both have, the
 * target), places are all positions of its long row, padding included. So 16 places are a vector,
 * even where rows are short. Between other layouts, places are the pixels of the target. */
#ifndef LACI_KERNEL_SPARSE_REORDER_IN_H
#define LACI_KERNEL_SPARSE_REORDER_IN_H

#include <stdbool.h>

#include "kernel/sparse/reorder.h"

enum { LACI_SPARSE_CHUNK = 128 }; /* most channels, and most places, of an item */

typedef struct laci_sparse_item {
  int64_t image,
      n_images; /* index of the first image, and number of images: 16 at most, 1 if neither layout
                   is HWC16N */
  int64_t channel, n_channels;
  int64_t place, n_places;
  /* Floats from the beginning of an image block to the pixel of each place, channel 0. Both are -1
   * where the place is padding, or is not copied. If places are counted along a layout's long row,
   * that layout's array is not used and is 0. */
  int64_t from[LACI_SPARSE_CHUNK], to[LACI_SPARSE_CHUNK];
} laci_sparse_item;

static inline bool laci_sparse_lanes_are_pixels(const laci_sparse_layout *l) {
  return l->format == LACI_FORMAT_CHW || l->format == LACI_FORMAT_PC16P;
}

void laci_sparse_describe_item(const laci_sparse_reorder *r, int64_t index, laci_sparse_item *item);

#endif
