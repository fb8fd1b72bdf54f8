/* SPDX-License-Identifier: Apache-2.0
 * resize.h pixel by pixel in plain C: the reference, also used for the ends of rows and on
 * processors without a vector variant. */
#ifndef LACI_KERNEL_IMAGE_RESIZE_IN_H
#define LACI_KERNEL_IMAGE_RESIZE_IN_H

#include "kernel/image/resize.h"

enum { LACI_TAP_HALF = 1 << (LACI_TAP_BITS - 1) };

/** Converts a sum of weighted grey levels to a byte. The weights of a long span may add up to a
 * little more than 1, hence the bound. */
static inline uint8_t laci_tap_sum_to_grey(uint32_t sum) {
  uint32_t grey = sum >> LACI_TAP_BITS;
  return (uint8_t)(grey > 255 ? 255 : grey);
}

static inline void laci_image_resize_horizontal_plain(const laci_tap_span *spans, int n_spans,
                                                      const laci_resize_rows *rows) {
  for (int y = 0; y < rows->n; y++) {
    uint8_t *to = rows->to + (size_t)y * rows->to_stride;
    for (int k = 0; k < n_spans * 3; k++) {
      const laci_tap_span *span = &spans[k / 3];
      const uint8_t *at =
          rows->from + (size_t)y * rows->from_stride + (size_t)span->first * 3 + k % 3;
      uint32_t sum = LACI_TAP_HALF;
      for (int x = 0; x < span->count; x++) sum += (uint32_t)span->weight[x] * at[(size_t)x * 3];
      to[k] = laci_tap_sum_to_grey(sum);
    }
  }
}

/** Computes bytes [begin, stride) of a row, as laci_image_resize.down does. */
static inline void laci_image_resize_vertical_plain(laci_tap_span span, const uint8_t *rows,
                                                    size_t stride, size_t begin, uint8_t *to) {
  const uint8_t *top = rows + (size_t)span.first * stride;
  for (size_t x = begin; x < stride; x++) {
    uint32_t sum = LACI_TAP_HALF;
    for (int y = 0; y < span.count; y++) {
      sum += (uint32_t)span.weight[y] * top[(size_t)y * stride + x];
    }
    to[x] = laci_tap_sum_to_grey(sum);
  }
}

/** Converts pixels [begin, width) of a row, as laci_image_resize.scale does. */
static inline void laci_image_resize_scale_plain(const laci_image_scale *scale, const uint8_t *row,
                                                 size_t width, size_t begin, float *to,
                                                 size_t channel_stride) {
  for (int c = 0; c < scale->n_channels; c++) {
    float *channel = to + (size_t)c * channel_stride;
    for (size_t x = begin; x < width; x++) {
      float value = ((float)row[x * 3 + (size_t)c] - scale->mean[c]) / scale->std[c];
      channel[scale->mirrored ? width - 1 - x : x] = value;
    }
  }
}

#endif
