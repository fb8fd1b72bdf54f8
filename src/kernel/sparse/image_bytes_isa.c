/* SPDX-License-Identifier: Apache-2.0
 * image_bytes.h for every instruction set. Loops over sixteen pixels are plain, so that the
 * compiler vectorizes them. */
#include <stddef.h>
#include <string.h>

#include "kernel/sparse/bytes.h"
#include "kernel/sparse/bytes_in.h"
#include "kernel/sparse/image_bytes.h"
#include "kernel/sparse/int8x4.h"

enum {
  LANES = LACI_SPARSE_LANES,
  INT8X4 = LACI_INT8X4_CHANNELS,
  BYTE_BITS = 8,
  STRIP = 16 * LANES, /* number of pixels that are quantized at a time */
};

/* Quantizes n pixels of one channel. */
static void quantize_pixels(const laci_fake_quantized *q, const float *x, int64_t n, int shift,
                            uint32_t *restrict int8x4) {
  float rest[LANES] = {0};
  int64_t at = 0;
  for (; at + LANES <= n; at += LANES) laci_quantize_lanes(q, x + at, shift, int8x4 + at);
  if (at == n) return;
  memcpy(rest, x + at, (size_t)(n - at) * sizeof *rest);
  laci_quantize_lanes(q, rest, shift, int8x4 + at);
}

/* A strip of pixels of a row: where it begins, and how many it has. */
typedef struct strip {
  int64_t int8x4, y, x, n; /* index of the int8x4 of each pixel; first pixel; number of pixels */
} strip;

/* Quantizes a strip. image: the floats of its image. */
static void quantize_strip_of_pixels(const laci_image_bytes *b, const float *image, const strip *s,
                                     uint32_t *int8x4) {
  const uint32_t zero = (uint32_t)laci_bytes_zero_point(b->q);
  memset(int8x4, 0, STRIP * sizeof *int8x4);
  for (int c = 0; c < INT8X4; c++) {
    const int64_t channel = s->int8x4 * INT8X4 + c;
    const int shift = BYTE_BITS * c;
    if (channel < b->size.channels) {
      const float *x = image + laci_sparse_offset(&b->floats, channel, s->y, s->x);
      quantize_pixels(b->q, x, s->n, shift, int8x4);
    } else {
      for (int64_t at = 0; at < s->n; at++) int8x4[at] |= zero << shift;
    }
  }
}

/* Stores a strip. to: the int8x4 of its image. Pixels of one phase are neighbours in CHW. */
static void store_strip_of_pixels(const laci_sparse_layout *l, const strip *s,
                                  const uint32_t *int8x4, float *to) {
  if (l->format == LACI_FORMAT_PC16P) {
    for (int64_t at = 0; at < s->n; at++) {
      memcpy(to + laci_sparse_offset(l, s->int8x4, s->y, s->x + at), int8x4 + at, sizeof *int8x4);
    }
    return;
  }
  for (int64_t first = 0; first < l->phases_w && first < s->n; first++) {
    float *y = to + laci_sparse_offset(l, s->int8x4, s->y, s->x + first);
    if (l->phases_w == 1) memcpy(y, int8x4, (size_t)s->n * sizeof *int8x4);
    for (int64_t at = first; l->phases_w > 1 && at < s->n; at += l->phases_w) {
      memcpy(y++, int8x4 + at, sizeof *int8x4);
    }
  }
}

void LACI_VARIANT(laci_image_bytes_pack)(const laci_image_bytes *b, const float *floats,
                                         float *int8x4, int64_t first, int64_t last) {
  const int64_t each = laci_sparse_layout_channels(b->size.channels, LACI_SPARSE_S8);
  uint32_t pixels[STRIP];
  for (int64_t item = first; item < last; item++) {
    const int64_t image = item / b->size.h / each;
    strip s = {.int8x4 = item / b->size.h % each, .y = item % b->size.h};
    for (; s.x < b->size.w; s.x += s.n) {
      const int64_t left = b->size.w - s.x;
      s.n = left < STRIP ? left : STRIP;
      quantize_strip_of_pixels(b, floats + image * b->floats.n_floats, &s, pixels);
      store_strip_of_pixels(&b->int8x4, &s, pixels, int8x4 + image * b->int8x4.n_floats);
    }
  }
}
