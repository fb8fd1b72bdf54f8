/* SPDX-License-Identifier: Apache-2.0
 * How the work of reorder.h is divided into items. An item is some channels of some places of an
 * image, or of 16 images. Places are counted along the long row of the layout whose SIMD lanes are
 * pixels (CHW, PC16P; of two such, the target), what is no pixel included: so 16 places are a
 * vector there, also where rows are short. Between other layouts they are the target's pixels. */
#ifndef LACI_KERNEL_SPARSE_REORDER_IN_H
#define LACI_KERNEL_SPARSE_REORDER_IN_H

#include <stdbool.h>

#include "kernel/sparse/reorder.h"

enum { LACI_SPARSE_CHUNK = 128 }; /* channels, and places, of an item: as many at most */

typedef struct laci_sparse_item {
  int64_t image, n_images; /* the first one; 16 at most, 1 where neither layout is HWC16N */
  int64_t channel, n_channels;
  int64_t place, n_places;
  /* Floats from the beginning of an image block to each place's pixel, channel 0; -1 twice: there
   * is none, or it is not taken. 0 in the layout that has vectors of pixels, if places are counted
   * along it. */
  int64_t from[LACI_SPARSE_CHUNK], to[LACI_SPARSE_CHUNK];
} laci_sparse_item;

static inline bool laci_sparse_has_pixels(const laci_sparse_layout *l) {
  return l->format == LACI_FORMAT_CHW || l->format == LACI_FORMAT_PC16P;
}

void laci_sparse_item_of(const laci_sparse_reorder *r, int64_t index, laci_sparse_item *item);

#endif
