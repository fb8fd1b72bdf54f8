/* SPDX-License-Identifier: Apache-2.0
 * The reference of depthwise_int8x4.h: it computes one pixel of four channels at a time. */
#include <string.h>

#include "kernel/sparse/depthwise_int8x4.h"

enum { LANES = LACI_SPARSE_LANES, SIDE = LACI_INT8X4_CHANNELS, BYTE_BITS = 8 };

/* Returns the sum of a channel for one result pixel. x: the image block, from the lane of the image
 * on. The sum is unsigned, since it may wrap. */
static uint32_t sum_window(const laci_depthwise_int8x4 *d, const laci_sparse_operands *o,
                           const float *x, int64_t channel, const int64_t pixel[2]) {
  const laci_sparse_window *g = &d->window;
  uint32_t sum = (uint32_t)o->quantized->bias[channel];
  for (int64_t tap = 0; tap < g->kernel_h * g->kernel_w; tap++) {
    const int64_t row = tap / g->kernel_w, column = tap % g->kernel_w;
    const int64_t from = laci_sparse_offset(
        &d->in, channel / SIDE, pixel[0] * g->stride_h - g->pad_top + row * g->dilation_h,
        pixel[1] * g->stride_w - g->pad_left + column * g->dilation_w);
    const int32_t weight = d->weight[laci_depthwise_int8x4_weight_at(g, channel, row, column)];
    uint32_t int8x4;
    memcpy(&int8x4, x + from, sizeof int8x4);
    sum += (uint32_t)weight * (int8x4 >> channel % SIDE * BYTE_BITS & UINT8_MAX);
  }
  return sum;
}

/* Computes a pixel of an image, or of 16 images in HWC16N. */
static void compute_pixel(const laci_depthwise_int8x4 *d, const laci_sparse_operands *o,
                          const laci_depthwise_int8x4_item *item, const int64_t pixel[2]) {
  const int n_lanes = d->in.format == LACI_FORMAT_HWC16N ? LANES : 1;
  const float *x = o->x + item->image_block * d->in.n_floats;
  float sums[SIDE * LANES] = {0};
  for (int64_t at = 0; at < item->n_channels; at++) {
    for (int lane = 0; lane < n_lanes; lane++) {
      const uint32_t sum = sum_window(d, o, x + lane, item->channel + at, pixel);
      memcpy(sums + at * LANES + lane, &sum, sizeof sum);
    }
  }
  const laci_sparse_tile tile = {.out = item->image_block * d->out.n_floats +
                                        laci_sparse_offset(&d->out, 0, pixel[0], pixel[1]),
                                 .lanes = ((uint64_t)1 << n_lanes) - 1};
  const laci_sparse_part part = {&tile, 0, 1, item->channel, item->channel + item->n_channels};
  laci_sparse_finish_scalar(o, d->out.channel_stride, LACI_SPARSE_S8, &part, sums);
}

void laci_depthwise_int8x4_scalar(const laci_depthwise_int8x4 *d, const laci_sparse_operands *o,
                                  int64_t first, int64_t last) {
  for (int64_t at = first; at < last; at++) {
    const laci_depthwise_int8x4_item item = laci_depthwise_int8x4_find_item(d, at);
    for (int64_t row = item.row_first; row < item.row_last; row++) {
      for (int64_t column = 0; column < d->window.out_w; column++) {
        compute_pixel(d, o, &item, (const int64_t[]){row, column});
      }
    }
  }
}
