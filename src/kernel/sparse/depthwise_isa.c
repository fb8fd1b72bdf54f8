/* SPDX-License-Identifier: Apache-2.0
 * The depthwise convolution of depthwise.h, compiled for every instruction set: 16 channels at a
 * time, of some tiles. depthwise_pixels_isa.h computes those whose lanes are pixels,
 * depthwise_images_isa.h those of HWC16N. */
#include <stdbool.h>

#include "base/min.h"
#include "kernel/sparse/depthwise.h"
#include "kernel/sparse/depthwise_images_isa.h"
#include "kernel/sparse/depthwise_pixels_isa.h"
#include "kernel/variants.h"

enum { CHANNELS = 16 }; /* number of channels that are computed at a time */

/* May the kernel store results directly? It may if clipping is all that follows the sums; and in
 * HWC16N, if all lanes of the tiles are results. */
static bool can_store_results(const laci_depthwise *d, const laci_sparse_operands *o,
                              const laci_sparse_part *part) {
  bool all = !o->residual && laci_sparse_is_only_clipped(o);
  if (d->out.format != LACI_FORMAT_HWC16N) return all;
  for (int64_t tile = part->tile_first; tile < part->tile_last; tile++) {
    all = all && laci_sparse_is_whole_tile(part->tiles[tile].lanes);
  }
  return all;
}

/* Computes some channels of some tiles of an image block. */
static void compute_channels(const laci_depthwise *d, const laci_sparse_operands *o,
                             const laci_sparse_part *part) {
  float sums[LACI_DEPTHWISE_TILES * CHANNELS * LANES];
  float *to = can_store_results(d, o, part) ? NULL : sums;
  if (d->out.format == LACI_FORMAT_HWC16N) sum_channels_of_images(d, o, part, to);
  else sum_channels_of_pixels(d, o, part, to);
  if (to) LACI_VARIANT(laci_sparse_finish)(o, d->out.channel_stride, LACI_SPARSE_F32, part, sums);
}

/* Computes a part, 16 channels at a time. So their input rows are still in the cache when the next
 * row of results reads them. */
void LACI_VARIANT(laci_depthwise_multiply)(const laci_depthwise *d, const laci_sparse_operands *o,
                                           const laci_sparse_part *part) {
  laci_sparse_part some = {.tiles = part->tiles};
  for (int64_t c = part->row_first; c < part->row_last; c = some.row_last) {
    some.row_first = c;
    some.row_last = laci_min(c + CHANNELS, part->row_last);
    for (int64_t tile = part->tile_first; tile < part->tile_last; tile = some.tile_last) {
      const int64_t after = (tile / d->tiles_per_block + 1) * d->tiles_per_block; /* the end of the
                                                                                     image block */
      some.tile_first = tile;
      some.tile_last = laci_min(tile + d->tiles_at_once, laci_min(after, part->tile_last));
      compute_channels(d, o, &some);
    }
  }
}
