/* SPDX-License-Identifier: Apache-2.0
 * The depthwise convolution of depthwise.h in HWC16N, for every instruction set. Lanes are images,
 * and some pixels of a row are computed at a time, for some channels. Only depthwise_isa.c includes
 * this. */
#ifndef LACI_KERNEL_SPARSE_DEPTHWISE_IMAGES_ISA_H
#define LACI_KERNEL_SPARSE_DEPTHWISE_IMAGES_ISA_H

#include <stdbool.h>
#include <stddef.h>

#include "kernel/sparse/depthwise.h"
#include "kernel/sparse/depthwise_long_row_isa.h"
#include "kernel/sparse/floats_isa.h"

#if defined(__AVX2__) || defined(__ARM_NEON) /* there are vectors */

enum {
  SIDE = 4, /* number of neighbouring pixels that are computed at once, so that each weight is
               loaded once for all */
};

/* Distances, in floats, between the pixels that windows read in HWC16N. */
typedef struct stride_of_pixels {
  int64_t row, column; /* distance from a tap to the tap below it, and to the tap on its right */
  int64_t next;        /* distance from the pixels of a result to those of the next result in the
                          row */
} stride_of_pixels;

static stride_of_pixels find_pixel_strides(const laci_depthwise *d) {
  const laci_sparse_window *g = &d->window;
  return (stride_of_pixels){g->dilation_h * d->in.row_stride, g->dilation_w * d->in.pixel_stride,
                            g->stride_w * d->in.pixel_stride};
}

/* Adds one row of the window's taps to the sums of n neighbouring results. */
INLINE void add_window_row(const float *x, const stride_of_pixels *s, const float *weight,
                           int64_t width, const int n, vector *sum) {
  for (int64_t column = 0; column < width; column++) {
    const vector w = ALL(weight[column]);
    const float *from = x + column * s->column;
#pragma GCC unroll 16
    for (int v = 0; v < n * VECTORS; v++) {
      sum[v] =
          FMA(w, LOAD(from + v / VECTORS * s->next + (ptrdiff_t)(v % VECTORS * WIDTH)), sum[v]);
    }
  }
}

/* Adds one row of three taps to the sums of SIDE neighbouring results that share pixels. Each pixel
 * is loaded once. */
INLINE void add_window_row_of_three(const float *x, const stride_of_pixels *s, const float *weight,
                                    vector *sum) {
  const vector w[3] = {ALL(weight[0]), ALL(weight[1]), ALL(weight[2])};
#pragma GCC unroll 6
  for (int column = 0; column < SIDE + 2; column++) {
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++) {
      const vector pixel = LOAD(x + column * s->column + (ptrdiff_t)(v * WIDTH));
#pragma GCC unroll 3
      for (int tap = 2; tap >= 0; tap--) {
        const int to = column - tap;
        if (to < 0 || to >= SIDE) continue;
        sum[to * VECTORS + v] = FMA(w[tap], pixel, sum[to * VECTORS + v]);
      }
    }
  }
}

/* How many neighbouring results are computed at a time. ONE: one. SOME: SIDE. SHARED: SIDE, each
 * pixel loaded once for all results that read it. */
enum { ONE, SOME, SHARED };

/* Where the sums of neighbouring results are stored: at[result], with `step` floats from one
 * channel to the next. clips: they are final results, and are clipped to the bounds. */
typedef struct target {
  float *at[SIDE];
  int64_t step;
  bool clips;
  float low, high;
} target;

/* Computes the sums of neighbouring results of a row, for the channels of a part. */
INLINE void sum_neighbouring_results(const laci_depthwise *d, const laci_sparse_operands *o,
                                     const float *x, const laci_sparse_part *part, const int how,
                                     const target *to) {
  const int n = how == ONE ? 1 : SIDE;
  const int64_t n_rows = d->window.kernel_h, width = d->window.kernel_w;
  const stride_of_pixels s = find_pixel_strides(d);
  const vector low = ALL(to->low), high = ALL(to->high);
  for (int64_t c = part->row_first; c < part->row_last; c++) {
    const float *weight = o->weight + c * n_rows * width, *from = x + c * d->in.channel_stride;
    vector sum[SIDE * VECTORS];
#pragma GCC unroll 16
    for (int v = 0; v < n * VECTORS; v++) sum[v] = ALL(o->bias[c]);
    for (int64_t row = 0; row < n_rows; row++, weight += width, from += s.row) {
      if (how == SHARED) add_window_row_of_three(from, &s, weight, sum);
      else add_window_row(from, &s, weight, width, n, sum);
    }
    const int64_t step = (c - part->row_first) * to->step;
#pragma GCC unroll 16
    for (int v = 0; v < n * VECTORS; v++) {
      if (to->clips) sum[v] = SMALLER(high, LARGER(low, sum[v]));
      STORE(to->at[v / VECTORS] + step + (ptrdiff_t)(v % VECTORS * WIDTH), sum[v]);
    }
  }
}

/* Computes some channels of some pixels in HWC16N, and stores them in `sums`. If sums is NULL, it
 * clips them and stores them as results. */
static void sum_channels_of_images(const laci_depthwise *d, const laci_sparse_operands *o,
                                   const laci_sparse_part *part, float *sums) {
  const laci_sparse_window *g = &d->window;
  const bool shared = g->kernel_w == 3 && g->dilation_w == g->stride_w;
  const int64_t rows = part->row_last - part->row_first, stride = d->out.channel_stride;
  target to = {.step = sums ? LANES : stride, .clips = !sums, .low = o->low, .high = o->high};
  for (int64_t tile = part->tile_first, next; tile < part->tile_last; tile = next) {
    const int64_t at = tile % d->tiles_per_block, y = at / g->out_w, column = at % g->out_w;
    const float *x = o->x + part->tiles[tile].in +
                     laci_sparse_offset(&d->in, 0, y * g->stride_h - g->pad_top,
                                        column * g->stride_w - g->pad_left);
    const bool side = tile + SIDE <= part->tile_last && column + SIDE <= g->out_w;
    next = tile + (side ? SIDE : 1);
    for (int64_t v = 0; v < next - tile; v++) {
      to.at[v] = sums ? sums + (tile - part->tile_first + v) * rows * LANES
                      : o->y + part->tiles[tile + v].out + part->row_first * stride;
    }
    if (side && shared) sum_neighbouring_results(d, o, x, part, SHARED, &to);
    else if (side) sum_neighbouring_results(d, o, x, part, SOME, &to);
    else sum_neighbouring_results(d, o, x, part, ONE, &to);
  }
}

#endif
#endif
