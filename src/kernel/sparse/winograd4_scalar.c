/* SPDX-License-Identifier: Apache-2.0
 * The reference of winograd4.h: it computes one lane at a time. */
#include <math.h>

#include "base/divide.h"
#include "kernel/sparse/winograd4.h"

enum {
  LANES = LACI_SPARSE_LANES,
  SIDE = LACI_WINOGRAD4_SIDE,
  READ = LACI_WINOGRAD4_READ,
};

static const float A = LACI_WINOGRAD4_A, B = LACI_WINOGRAD4_B, A2 = LACI_WINOGRAD4_A2,
                   B2 = LACI_WINOGRAD4_B2, A3 = LACI_WINOGRAD4_A3, B3 = LACI_WINOGRAD4_B3,
                   A2B2 = LACI_WINOGRAD4_A2B2, BOTH = LACI_WINOGRAD4_A2_AND_B2;

/* Transforms six pixels d of a row or column to points, B' d, in place. apart: number of floats
 * from one pixel to the next. */
static void transform_six_pixels(float *d, int apart) {
  const float d0 = d[0], d1 = d[apart], d2 = d[2 * apart], d3 = d[3 * apart], d4 = d[4 * apart],
              d5 = d[5 * apart];
  const float even_a = fmaf(-B2, d2, d4), odd_a = A * fmaf(-B2, d1, d3);
  const float even_b = fmaf(-A2, d2, d4), odd_b = B * fmaf(-A2, d1, d3);
  d[0] = fmaf(A2B2, d0, fmaf(-BOTH, d2, d4));
  d[apart] = even_a + odd_a;
  d[2 * apart] = even_a - odd_a;
  d[3 * apart] = even_b + odd_b;
  d[4 * apart] = even_b - odd_b;
  d[5 * apart] = fmaf(A2B2, d1, fmaf(-BOTH, d3, d5));
}

/* Computes two values of the transform from seven pixels d: those of the interpolation points x and
 * -x. */
static void transform_to_point_pair(const float d[6], float x, float product, float sum,
                                    float to[2]) {
  const float even = fmaf(product, d[0], fmaf(-sum, d[2], d[4]));
  const float odd = fmaf(product, d[1], fmaf(-sum, d[3], d[5]));
  to[0] = fmaf(x, even, odd);
  to[1] = fmaf(-x, even, odd);
}

static void transform_seven_pixels(float *d, int apart) {
  float from[READ], to[READ];
  for (int i = 0; i < READ; i++) from[i] = d[i * apart];
  transform_to_point_pair(from, LACI_WINOGRAD4_P, LACI_WINOGRAD4_Q2R2, LACI_WINOGRAD4_Q2_AND_R2,
                          to);
  transform_to_point_pair(from, LACI_WINOGRAD4_Q, LACI_WINOGRAD4_P2R2, LACI_WINOGRAD4_P2_AND_R2,
                          to + 2);
  transform_to_point_pair(from, LACI_WINOGRAD4_R, LACI_WINOGRAD4_P2Q2, LACI_WINOGRAD4_P2_AND_Q2,
                          to + 4);
  to[6] = fmaf(-LACI_WINOGRAD4_PRODUCT, from[0],
               fmaf(LACI_WINOGRAD4_BF16, from[2], fmaf(-LACI_WINOGRAD4_SQUARES, from[4], from[6])));
  for (int i = 0; i < READ; i++) d[i * apart] = to[i];
}

static void transform_to_points(const laci_winograd4 *w, float *d, int apart) {
  if (w->points == LACI_WINOGRAD4_POINTS) transform_seven_pixels(d, apart);
  else transform_six_pixels(d, apart);
}

/* Transforms six sums m of a row or column to results, A' m, which become the first four elements
 * of m. */
static void transform_six_sums(float *m, int apart) {
  const float m0 = m[0], m5 = m[5 * apart];
  const float sum_a = m[apart] + m[2 * apart], less_a = m[apart] - m[2 * apart];
  const float sum_b = m[3 * apart] + m[4 * apart], less_b = m[3 * apart] - m[4 * apart];
  m[0] = m0 + (sum_a + sum_b);
  m[apart] = fmaf(A, less_a, B * less_b);
  m[2 * apart] = fmaf(A2, sum_a, B2 * sum_b);
  m[3 * apart] = fmaf(A3, less_a, fmaf(B3, less_b, m5));
}

/* Transforms seven sums m of a row or column to results, A' m, which become the first four elements
 * of m. */
static void transform_seven_sums(float *m, int apart) {
  const float m6 = m[6 * apart];
  const float sum_p = m[0] + m[apart], less_p = m[0] - m[apart];
  const float sum_q = m[2 * apart] + m[3 * apart], less_q = m[2 * apart] - m[3 * apart];
  const float sum_r = m[4 * apart] + m[5 * apart], less_r = m[4 * apart] - m[5 * apart];
  m[0] = sum_p + (sum_q + sum_r);
  m[apart] =
      fmaf(LACI_WINOGRAD4_P, less_p, fmaf(LACI_WINOGRAD4_Q, less_q, LACI_WINOGRAD4_R * less_r));
  m[2 * apart] =
      fmaf(LACI_WINOGRAD4_P2, sum_p, fmaf(LACI_WINOGRAD4_Q2, sum_q, LACI_WINOGRAD4_R2 * sum_r));
  m[3 * apart] = fmaf(LACI_WINOGRAD4_P3, less_p,
                      fmaf(LACI_WINOGRAD4_Q3, less_q, fmaf(LACI_WINOGRAD4_R3, less_r, m6)));
}

static void transform_to_results(const laci_winograd4 *w, float *m, int apart) {
  if (w->points == LACI_WINOGRAD4_POINTS) transform_seven_sums(m, apart);
  else transform_six_sums(m, apart);
}

/* The position of a lane's tile: its image block, the coordinates of its first result, and the
 * lane, which is the image in HWC16N. */
typedef struct place {
  int64_t image_block, y, x;
  int lane;
} place;

static place find_lane_place(const laci_winograd4 *w, const laci_winograd4_block *b, int64_t lane) {
  const bool images = w->out.format == LACI_FORMAT_HWC16N;
  const int64_t tile = images ? b->first + lane / LANES : b->first * w->unit + lane;
  const int64_t each = w->tiles_h * w->tiles_w;
  return (place){.image_block = tile / each,
                 .y = tile % each / w->tiles_w * SIDE,
                 .x = tile % w->tiles_w * SIDE,
                 .lane = images ? (int)(lane % LANES) : 0};
}

static float pixel_or_zero(const laci_winograd4 *w, const float *x, const place *at,
                           int64_t channel, int64_t row, int64_t column) {
  const laci_sparse_window *g = &w->window;
  if (row < 0 || row >= g->h || column < 0 || column >= g->w) return 0;
  return x[at->image_block * w->in.n_floats + laci_sparse_offset(&w->in, channel, row, column) +
           at->lane];
}

void laci_winograd4_transform_scalar(const laci_winograd4 *w, const laci_winograd4_block *b,
                                     const float *x, const int64_t first_last[2], float *points) {
  const int64_t apart = laci_winograd4_point_stride(b, w->sources), parts = w->stride * w->stride;
  const int read = (int)laci_winograd4_tile_side(w->taps);
  for (int64_t s = first_last[0]; s < first_last[1]; s++) {
    const int64_t part = s % parts;
    for (int64_t lane = 0; lane < b->n_lanes; lane++) {
      const place at = find_lane_place(w, b, lane);
      const int64_t y = at.y * w->stride + part / w->stride - w->window.pad_top;
      const int64_t column = at.x * w->stride + part % w->stride - w->window.pad_left;
      float d[READ * READ];
      for (int p = 0; p < read * read; p++) {
        d[p] = pixel_or_zero(w, x, &at, s / parts, y + p / read * w->stride,
                             column + p % read * w->stride);
      }
      for (int i = 0; i < read; i++) transform_to_points(w, d + i, read);
      for (int i = 0; i < read; i++) transform_to_points(w, d + (ptrdiff_t)i * read, 1);
      for (int p = 0; p < read * read; p++) points[p * apart + s * b->stride + lane] = d[p];
    }
  }
}

void laci_winograd4_multiply_scalar(const laci_winograd4 *w, const laci_winograd4_block *b,
                                    const float *weights, const float *points,
                                    const int64_t first_last[2], float *sums) {
  const int64_t in = w->sources, out = w->window.channels_out;
  for (int64_t p = first_last[0]; p < first_last[1]; p++) {
    const float *x = points + p * laci_winograd4_point_stride(b, in);
    float *y = sums + p * laci_winograd4_point_stride(b, out);
    for (int64_t row = 0; row < out; row++) {
      const float *weight =
          weights + row % w->rows + (p * laci_winograd4_n_groups(w) + row / w->rows) * in * w->rows;
      for (int64_t lane = 0; lane < b->n_lanes; lane++) {
        float sum = 0;
        for (int64_t c = 0; c < in; c++) {
          sum = fmaf(weight[c * w->rows], x[c * b->stride + lane], sum);
        }
        y[row * b->stride + lane] = sum;
      }
    }
  }
}

/* Stores one result as a tile with one lane. row_y_x: output channel, row and column of the
 * result. */
static void store_result(const laci_winograd4 *w, const laci_sparse_operands *o, const place *at,
                         const int64_t row_y_x[3], float value) {
  const int64_t y = row_y_x[1], x = row_y_x[2];
  if (y >= w->window.out_h || x >= w->window.out_w) return;
  const laci_sparse_tile tile = {
      0, at->image_block * w->out.n_floats + laci_sparse_offset(&w->out, 0, y, x) + at->lane, 1, 0,
      0};
  const laci_sparse_part part = {&tile, 0, 1, row_y_x[0], row_y_x[0] + 1};
  float sums[LANES] = {value};
  laci_sparse_finish_scalar(o, w->out.channel_stride, LACI_SPARSE_F32, &part, sums);
}

void laci_winograd4_finish_scalar(const laci_winograd4 *w, const laci_winograd4_block *b,
                                  const float *sums, const int64_t first_last[2],
                                  const laci_sparse_operands *o) {
  const int64_t apart = laci_winograd4_point_stride(b, w->window.channels_out);
  const int read = (int)laci_winograd4_tile_side(w->taps);
  for (int64_t row = first_last[0]; row < first_last[1]; row++) {
    for (int64_t lane = 0; lane < b->n_lanes; lane++) {
      const place at = find_lane_place(w, b, lane);
      float m[READ * READ];
      for (int p = 0; p < read * read; p++) m[p] = sums[p * apart + row * b->stride + lane];
      for (int i = 0; i < read; i++) transform_to_results(w, m + i, read);
      for (int i = 0; i < SIDE; i++) transform_to_results(w, m + (ptrdiff_t)i * read, 1);
      for (int p = 0; p < SIDE * SIDE; p++) {
        const int64_t y = p / SIDE, x = p % SIDE, result[3] = {row, at.y + y, at.x + x};
        store_result(w, o, &at, result, m[y * read + x] + o->bias[row]);
      }
    }
  }
}
