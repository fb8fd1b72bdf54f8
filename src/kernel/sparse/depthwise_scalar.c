/* SPDX-License-Identifier: Apache-2.0
 * The reference of depthwise.h: it computes one result at a time. */
#include <math.h>

#include "kernel/sparse/depthwise.h"

/* Returns the sum of a channel for one result. place: its position in the long row of results; in
 * HWC16N, the index of its pixel. */
static float sum_window(const laci_depthwise *d, const float *x, const float *weight, float bias,
                        int64_t channel, int64_t place) {
  const laci_sparse_window *g = &d->window;
  const bool images = d->out.format == LACI_FORMAT_HWC16N;
  const int64_t width = images ? g->out_w : d->out.row_stride;
  const int64_t y = place / width * g->stride_h - g->pad_top;
  const int64_t first = place % width * g->stride_w - g->pad_left;
  float sum = bias;
  for (int64_t tap = 0; tap < g->kernel_h * g->kernel_w; tap++) {
    const int64_t row = y + tap / g->kernel_w * g->dilation_h;
    const int64_t column = first + tap % g->kernel_w * g->dilation_w;
    sum = fmaf(weight[tap], x[laci_sparse_offset(&d->in, channel, row, column)], sum);
  }
  return sum;
}

void laci_depthwise_multiply_scalar(const laci_depthwise *d, const laci_sparse_operands *o,
                                    const laci_sparse_part *part) {
  const int64_t taps = d->window.kernel_h * d->window.kernel_w;
  const bool images = d->out.format == LACI_FORMAT_HWC16N;
  for (int64_t t = part->tile_first; t < part->tile_last; t++) {
    const laci_sparse_tile *tile = &part->tiles[t];
    const int64_t at = t % d->tiles_per_block;
    for (int64_t c = part->row_first; c < part->row_last; c++) {
      float sums[LACI_SPARSE_LANES] = {0};
      for (int lane = 0; lane < LACI_SPARSE_LANES; lane++) {
        if (!(tile->lanes >> lane & 1)) continue;
        const float *x = o->x + tile->in + (images ? lane : 0);
        const int64_t place = images ? at : at * LACI_SPARSE_LANES + lane;
        sums[lane] = sum_window(d, x, o->weight + c * taps, o->bias[c], c, place);
      }
      const laci_sparse_part one = {part->tiles, t, t + 1, c, c + 1};
      laci_sparse_finish_scalar(o, d->out.channel_stride, LACI_SPARSE_F32, &one, sums);
    }
  }
}
