/* SPDX-License-Identifier: Apache-2.0
 * The reference of resize.h (resize_in.h). */
#include "kernel/image/resize_in.h"

static void resize_horizontally(const laci_tap_span *spans, int n_spans,
                                const laci_resize_rows *rows) {
  laci_image_resize_horizontal_plain(spans, n_spans, rows);
}

static void resize_vertically(laci_tap_span span, const uint8_t *rows, size_t stride, uint8_t *to) {
  laci_image_resize_vertical_plain(span, rows, stride, 0, to);
}

static void convert_row_to_floats(const laci_image_scale *how, const uint8_t *row, size_t width,
                                  float *to, size_t channel_stride) {
  laci_image_resize_scale_plain(how, row, width, 0, to, channel_stride);
}

const laci_image_resize laci_image_resize_scalar = {resize_horizontally, resize_vertically,
                                                    convert_row_to_floats};
