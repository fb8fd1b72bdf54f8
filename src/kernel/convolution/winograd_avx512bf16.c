/* SPDX-License-Identifier: Apache-2.0
 * winograd.h by AVX512-BF16. A register holds the sums of one transformed point of one tile, for 16
 * output channels. 4 points of 6 tiles are summed at once over all input channels. An instruction
 * multiplies two input channels, broadcast to all lanes, by their weights. The six tiles may
 * continue in the next row, so that short rows fill them as well as long ones. */
#include <immintrin.h>
#include <string.h>

#include "kernel/convolution/pixels_avx512.h"
#include "kernel/convolution/winograd.h"

enum {
  BLOCK = LACI_WINOGRAD_BLOCK,
  WINDOW = LACI_WINOGRAD_WINDOW,
  POINTS = LACI_WINOGRAD_POINTS,
  OUT = LACI_WINOGRAD_OUT,
  AT_ONCE = 6, /* tiles that are computed at once */
  PAIRS = BLOCK / 2,
};

#define INLINE static inline __attribute__((always_inline))

/* ---- Weights ---- */

/** Transforms the weights of 16 output channels and one input channel, for one window row. */
INLINE void transform_weights(const float *weight, __m512i channels, const int order[WINDOW],
                              __m512 points[POINTS]) {
  const __m512 half = _mm512_set1_ps(0.5F);
  __m512 g[WINDOW];
  for (int j = 0; j < WINDOW; j++) g[j] = _mm512_i32gather_ps(channels, weight + order[j], 4);
  __m512 ends = _mm512_add_ps(g[0], g[2]);
  points[0] = g[0];
  points[1] = _mm512_mul_ps(_mm512_add_ps(ends, g[1]), half);
  points[2] = _mm512_mul_ps(_mm512_sub_ps(ends, g[1]), half);
  points[3] = g[2];
}

/** Makes [16 out][2 in] of two registers of 16 out. */
INLINE __m512i interleave_channel_pairs(__m512 first, __m512 second) {
  return laci_interleave_pixels((__m512i)_mm512_cvtne2ps_pbh(second, first));
}

void laci_winograd_transform_avx512bf16(const laci_winograd *g, const float *weight, bool gradient,
                                        const int64_t first_last[2], uint16_t *to) {
  int64_t n_in = g->c_blocks * BLOCK, n_out = g->k_blocks * BLOCK;
  int64_t square = WINDOW * WINDOW, next_in = (gradient ? n_out : 1) * square;
  int64_t next_out = (gradient ? 1 : n_in) * square;
  const int order[WINDOW] = {gradient ? 2 : 0, 1, gradient ? 0 : 2};
  const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  __m512i channels = _mm512_mullo_epi32(lanes, _mm512_set1_epi32((int)next_out));
  uint16_t *at = to + first_last[0] * (laci_winograd_n_weights(g) / g->k_blocks);
  for (int64_t k = first_last[0]; k < first_last[1]; k++) {
    for (int64_t c = 0; c < g->c_blocks; c++) {
      const float *from = weight + k * BLOCK * next_out + c * BLOCK * next_in;
      for (int64_t i = 0; i < WINDOW; i++) {
        const float *row = from + (gradient ? WINDOW - 1 - i : i) * WINDOW;
        for (int64_t pair = 0; pair < PAIRS; pair++, at += (ptrdiff_t)POINTS * BLOCK * 2) {
          __m512 a[POINTS], b[POINTS];
          transform_weights(row + 2 * pair * next_in, channels, order, a);
          transform_weights(row + (2 * pair + 1) * next_in, channels, order, b);
          for (int p = 0; p < POINTS; p++) {
            _mm512_storeu_si512(at + (ptrdiff_t)p * BLOCK * 2,
                                interleave_channel_pairs(a[p], b[p]));
          }
        }
      }
    }
  }
}

/* ---- Images ---- */

/** Transformed rows: [images][c_blocks][4 points][rows in][tiles][16]. */
typedef struct rows {
  uint16_t *points;
  int64_t n_in, tiles; /* number of input rows in a band, and of tiles in a row */
} rows;

INLINE void store_transformed_point(uint16_t *to, __m512 x) {
  _mm256_store_si256((void *)to, (__m256i)_mm512_cvtneps_pbh(x));
}

/** Transforms a row of the image; point_stride: the distance from one point to the next. */
static void transform_input_row(const uint16_t *row, int64_t width, int64_t first, const rows *r,
                                uint16_t *to) {
  int64_t point_stride = r->n_in * r->tiles * BLOCK, at = first;
  __m512 d0 = laci_pixel_floats(row, width, at), d1 = laci_pixel_floats(row, width, at + 1);
  for (int64_t tile = 0; tile < r->tiles; tile++, at += OUT, to += BLOCK) {
    __m512 d2 = laci_pixel_floats(row, width, at + 2), d3 = laci_pixel_floats(row, width, at + 3);
    store_transformed_point(to, _mm512_sub_ps(d0, d2));
    store_transformed_point(to + point_stride, _mm512_add_ps(d1, d2));
    store_transformed_point(to + 2 * point_stride, _mm512_sub_ps(d2, d1));
    store_transformed_point(to + 3 * point_stride, _mm512_sub_ps(d1, d3));
    d0 = d2;
    d1 = d3;
  }
}

static void transform_input_band(const laci_winograd *g, const laci_winograd_band *band,
                                 const uint16_t *x, const rows *r) {
  int64_t point_stride = r->n_in * r->tiles * BLOCK;
  uint16_t *to = r->points;
  for (int64_t n = band->n_first; n < band->n_last; n++) {
    for (int64_t c = 0; c < g->c_blocks; c++, to += (POINTS - 1) * point_stride) {
      const uint16_t *image = x + (n * g->c_blocks + c) * g->h * g->w * BLOCK;
      for (int64_t i = 0; i < r->n_in; i++, to += r->tiles * BLOCK) {
        int64_t row = band->row_first - g->pad_top + i;
        if (row >= 0 && row < g->h) {
          transform_input_row(image + row * g->w * BLOCK, g->w, -g->pad_left, r, to);
        } else {
          for (int p = 0; p < POINTS; p++) {
            memset(to + p * point_stride, 0, (size_t)(r->tiles * BLOCK) * sizeof *to);
          }
        }
      }
    }
  }
}

/** Where result tiles are stored. */
typedef struct target {
  uint16_t *y; /* the first row of the band in y, for one block of 16 channels */
  int64_t width, tiles;
} target;

INLINE void store_result_tile(const target *t, int64_t tile, const __m512 m[POINTS]) {
  int64_t row = tile / t->tiles, column = tile % t->tiles * OUT;
  uint16_t *to = t->y + (row * t->width + column) * BLOCK;
  __m512 middle = _mm512_add_ps(m[0], m[1]), right = _mm512_sub_ps(m[1], m[2]);
  __m512 first = _mm512_add_ps(middle, m[2]), second = _mm512_sub_ps(right, m[3]);
  if (column + 1 < t->width) {
    _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(second, first));
  } else {
    _mm256_storeu_si256((void *)to, (__m256i)_mm512_cvtneps_pbh(first));
  }
}

/** The operands: transformed rows of an image, and the weights of an output block. */
typedef struct operands {
  const uint16_t *points, *weights;
} operands;

/** Computes n tiles from `tile` on, of one image and one output block. n is a constant where this
 * is inlined. */
INLINE void convolve_tiles(const laci_winograd *g, const rows *r, operands of, const target *t,
                           int64_t tile, const int n) {
  const uint16_t *weights = of.weights;
  int64_t row = r->tiles * BLOCK, point_stride = r->n_in * row;
  __m512 m[AT_ONCE][POINTS];
#pragma GCC unroll 6
  for (int s = 0; s < n; s++) {
#pragma GCC unroll 4
    for (int p = 0; p < POINTS; p++) m[s][p] = _mm512_setzero_ps();
  }
  for (int64_t c = 0; c < g->c_blocks; c++) {
    for (int64_t i = 0; i < WINDOW; i++) {
      const uint16_t *d = of.points + c * POINTS * point_stride + i * row + tile * BLOCK;
      for (int64_t pair = 0; pair < PAIRS;
           pair++, d += 2, weights += (ptrdiff_t)POINTS * BLOCK * 2) {
#pragma GCC unroll 4
        for (int p = 0; p < POINTS; p++) {
          __m512bh w = (__m512bh)_mm512_loadu_si512(weights + (ptrdiff_t)p * BLOCK * 2);
#pragma GCC unroll 6
          for (int s = 0; s < n; s++) {
            int two;
            memcpy(&two, d + p * point_stride + (ptrdiff_t)s * BLOCK, sizeof two);
            m[s][p] = _mm512_dpbf16_ps(m[s][p], w, (__m512bh)_mm512_set1_epi32(two));
          }
        }
      }
    }
  }
#pragma GCC unroll 6
  for (int s = 0; s < n; s++) store_result_tile(t, tile + s, m[s]);
}

static void convolve_image(const laci_winograd *g, const rows *r, operands of, const target *t,
                           int64_t n_rows) {
  int64_t tile = 0, n = n_rows * r->tiles;
  for (; tile + AT_ONCE <= n; tile += AT_ONCE) { convolve_tiles(g, r, of, t, tile, AT_ONCE); }
  switch (n - tile) {
    case 5: convolve_tiles(g, r, of, t, tile, 5); break;
    case 4: convolve_tiles(g, r, of, t, tile, 4); break;
    case 3: convolve_tiles(g, r, of, t, tile, 3); break;
    case 2: convolve_tiles(g, r, of, t, tile, 2); break;
    case 1: convolve_tiles(g, r, of, t, tile, 1); break;
    default: break;
  }
}

void laci_winograd_convolve_avx512bf16(const laci_winograd *g, const laci_winograd_band *band,
                                       const uint16_t *x, const uint16_t *weights, uint16_t *y,
                                       void *scratch) {
  int64_t n_rows = band->row_last - band->row_first;
  rows r = {.points = scratch, .n_in = n_rows + WINDOW - 1, .tiles = laci_winograd_n_tiles(g)};
  int64_t image = g->c_blocks * POINTS * r.n_in * r.tiles * BLOCK;
  transform_input_band(g, band, x, &r);
  for (int64_t k = 0; k < g->k_blocks; k++) {
    const uint16_t *w = weights + k * (laci_winograd_n_weights(g) / g->k_blocks);
    for (int64_t n = band->n_first; n < band->n_last; n++) {
      int64_t first = (n * g->k_blocks + k) * g->out_h + band->row_first;
      const target t = {.y = y + first * g->out_w * BLOCK, .width = g->out_w, .tiles = r.tiles};
      const operands of = {r.points + (n - band->n_first) * image, w};
      convolve_image(g, &r, of, &t, n_rows);
    }
  }
}
