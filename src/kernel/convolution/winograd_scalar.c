/* SPDX-License-Identifier: Apache-2.0
 * The reference of winograd.h: one pair of pixels and one channel at a time. */
#include "kernel/convolution/winograd.h"
#include "tensor/bf16.h"

enum {
  BLOCK = LACI_WINOGRAD_BLOCK,
  WINDOW = LACI_WINOGRAD_WINDOW,
  POINTS = LACI_WINOGRAD_POINTS,
  OUT = LACI_WINOGRAD_OUT,
};

/** Returns the index of the weight of channel `in` of all blocks and channel `out` of block k, for
 * window row i and a point. */
static int64_t weight_index(const laci_winograd *g, int64_t k, int64_t i, int64_t in, int64_t point,
                            int64_t out) {
  int64_t pair = ((k * g->c_blocks + in / BLOCK) * WINDOW + i) * (BLOCK / 2) + in % BLOCK / 2;
  return ((pair * POINTS + point) * BLOCK + out) * 2 + in % 2;
}

void laci_winograd_transform_scalar(const laci_winograd *g, const float *weight, bool gradient,
                                    const int64_t first_last[2], uint16_t *to) {
  int64_t n_in = g->c_blocks * BLOCK, n_out = g->k_blocks * BLOCK;
  for (int64_t out = first_last[0] * BLOCK; out < first_last[1] * BLOCK; out++) {
    for (int64_t in = 0; in < n_in; in++) {
      const float *w = weight + (gradient ? in * n_out + out : out * n_in + in) * WINDOW * WINDOW;
      for (int64_t i = 0; i < WINDOW; i++) {
        const float *row = w + (gradient ? WINDOW - 1 - i : i) * WINDOW;
        float first = row[gradient ? 2 : 0], last = row[gradient ? 0 : 2], ends = first + last;
        const float points[POINTS] = {first, (ends + row[1]) * 0.5F, (ends - row[1]) * 0.5F, last};
        for (int64_t p = 0; p < POINTS; p++) {
          int64_t at = weight_index(g, out / BLOCK, i, in, p, out % BLOCK);
          to[at] = laci_bf16_round(points[p]);
        }
      }
    }
  }
}

/** Returns a pixel of one channel; zero outside of the image. */
static float pixel_or_zero(const laci_winograd *g, const uint16_t *block, int64_t row,
                           int64_t column, int64_t channel) {
  if (row < 0 || row >= g->h || column < 0 || column >= g->w) return 0;
  return laci_bf16_value(block[(row * g->w + column) * BLOCK + channel]);
}

static void add_tile_products(const laci_winograd *g, const uint16_t *x, const uint16_t *weights,
                              const int64_t at[4], float m[POINTS]) {
  int64_t k = at[0], out = at[1], row = at[2] - g->pad_top, column = at[3] - g->pad_left;
  for (int64_t in = 0; in < g->c_blocks * BLOCK; in++) {
    const uint16_t *block = x + in / BLOCK * g->h * g->w * BLOCK;
    for (int64_t i = 0; i < WINDOW; i++) {
      float d[POINTS];
      for (int p = 0; p < POINTS; p++)
        d[p] = pixel_or_zero(g, block, row + i, column + p, in % BLOCK);
      const float points[POINTS] = {d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]};
      for (int p = 0; p < POINTS; p++) {
        uint16_t weight = weights[weight_index(g, k, i, in, p, out)];
        m[p] += laci_bf16_value(laci_bf16_round(points[p])) * laci_bf16_value(weight);
      }
    }
  }
}

void laci_winograd_convolve_scalar(const laci_winograd *g, const laci_winograd_band *band,
                                   const uint16_t *x, const uint16_t *weights, uint16_t *y,
                                   void *scratch) {
  (void)scratch;
  for (int64_t n = band->n_first; n < band->n_last; n++) {
    const uint16_t *image = x + n * g->c_blocks * g->h * g->w * BLOCK;
    for (int64_t k = 0; k < g->k_blocks * BLOCK; k++) {
      uint16_t *block = y + (n * g->k_blocks + k / BLOCK) * g->out_h * g->out_w * BLOCK;
      for (int64_t row = band->row_first; row < band->row_last; row++) {
        for (int64_t column = 0; column < g->out_w; column += OUT) {
          float m[POINTS] = {0};
          add_tile_products(g, image, weights, (int64_t[]){k / BLOCK, k % BLOCK, row, column}, m);
          uint16_t *to = block + (row * g->out_w + column) * BLOCK + k % BLOCK;
          to[0] = laci_bf16_round(m[0] + m[1] + m[2]);
          if (column + 1 < g->out_w) to[BLOCK] = laci_bf16_round(m[1] - m[2] - m[3]);
        }
      }
    }
  }
}
