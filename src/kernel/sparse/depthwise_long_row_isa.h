/* SPDX-License-Identifier: Apache-2.0
 * Sums of a long row of results (window.h), for the depthwise convolution in CHW and PC16P, and
 * where they are stored. If windows do not stride, the pixels of each tap make one long row, too.
 * Only kernels of depthwise.h include this. */
#ifndef LACI_KERNEL_SPARSE_DEPTHWISE_LONG_ROW_ISA_H
#define LACI_KERNEL_SPARSE_DEPTHWISE_LONG_ROW_ISA_H

#include <stdbool.h>
#include <stddef.h>

#include "kernel/sparse/depthwise.h"
#include "kernel/sparse/floats_isa.h"
#include "kernel/sparse/tile_isa.h"

#if defined(__AVX2__) || defined(__ARM_NEON) /* there are vectors */

#define INLINE static inline __attribute__((always_inline))

enum {
  LANES = LACI_SPARSE_LANES,
  VECTORS = LANES / WIDTH,                     /* number of vectors that hold the lanes of a tile */
  MOST_VECTORS = WIDTH == 16 ? 4 : 32 / WIDTH, /* maximum number of vectors of sums that registers
                                                  hold */
  MOST_SIDE = 5, /* width and height of the largest window for which code is compiled */
};

/* ---- Sums of a long row ---- */

/* What the sums of a channel read. The rows of results are one long row, and its position i reads
 * x[place[tap] + i] for each tap. */
typedef struct channel_input {
  const float *x, *weight;
  const int64_t *place;
  float bias;
  int64_t phase_stride; /* that of `reading` */
  int64_t n_taps;
} channel_input;

/* Where the sums of neighbouring tiles are stored: at to + i * apart for tile i. If `tiles` is not
 * NULL, they are results of these tiles: they are clipped and stored at to + tiles[i].out. */
typedef struct pixel_target {
  float *to;
  int64_t apart;
  const laci_sparse_tile *tiles;
  float low, high;
} pixel_target;

/* Stores the vectors of a tile that are results. */
INLINE void store_lanes(float *y, uint64_t lanes, const vector *v) {
#if defined(__AVX512F__)
  const __mmask16 mask = (__mmask16)lanes;
  if (lanes & LACI_SPARSE_ZEROS_AROUND) STORE(y, _mm512_maskz_mov_ps(mask, v[0]));
  else _mm512_mask_storeu_ps(y, mask, v[0]);
#else
  const bool whole = laci_sparse_is_whole_tile(lanes);
  float all[LANES], *to = whole ? y : all;
  for (int at = 0; at < VECTORS; at++) STORE(to + (ptrdiff_t)(at * WIDTH), v[at]);
  if (!whole) laci_sparse_store_tile(y, lanes, all);
#endif
}

/* Stores the sums of a tile, or clips and stores its results. */
INLINE void store_tile(const pixel_target *t, int64_t tile, vector *sum) {
  if (t->tiles) {
    const vector low = ALL(t->low), high = ALL(t->high);
    for (int v = 0; v < VECTORS; v++) sum[v] = SMALLER(high, LARGER(low, sum[v]));
    store_lanes(t->to + t->tiles[tile].out, t->tiles[tile].lanes, sum);
    return;
  }
  for (int v = 0; v < VECTORS; v++) STORE(t->to + tile * t->apart + (ptrdiff_t)(v * WIDTH), sum[v]);
}

/* What a square window without dilation reads. row: that of the first tap of each row. */
typedef struct square_input {
  const float *row[MOST_SIDE];
  vector weight[MOST_SIDE * MOST_SIDE];
  int64_t phase_stride;
} square_input;

/* Adds the taps of a window of side x side to n vectors of sums from position `at` of the long
 * row. */
INLINE void add_square(const square_input *s, int64_t at, const int side, const int stride,
                       const int n, vector *sum) {
#pragma GCC unroll 25
  for (int tap = 0; tap < side * side; tap++) {
    const int column = tap % side;
    const float *x = s->row[tap / side] + at;
    x += stride == 1 ? column : column % 2 * s->phase_stride + column / 2;
#pragma GCC unroll 8
    for (int v = 0; v < n; v++)
      sum[v] = FMA(s->weight[tap], LOAD(x + (ptrdiff_t)(v * WIDTH)), sum[v]);
  }
}

/* As add_square, for any window. */
INLINE void add_any_window(const channel_input *c, int64_t at, const int n, vector *sum) {
  for (int64_t tap = 0; tap < c->n_taps; tap++) {
    const float *x = c->x + c->place[tap] + at;
    const vector weight = ALL(c->weight[tap]);
#pragma GCC unroll 8
    for (int v = 0; v < n; v++) sum[v] = FMA(weight, LOAD(x + (ptrdiff_t)(v * WIDTH)), sum[v]);
  }
}

/* Computes n contiguous sums, from position `from` of the long row on, which are whole tiles. Up to
 * 15 more sums are stored after them. side, stride: those of a square window; 0: any window. */
INLINE void sum_long_row(const channel_input *c, int64_t from, int64_t n, const int side,
                         const int stride, const pixel_target *to) {
  enum { AT_ONCE = MOST_VECTORS * WIDTH };
  const vector bias = ALL(c->bias);
  square_input s = {.phase_stride = c->phase_stride};
  vector sum[MOST_VECTORS];
#pragma GCC unroll 5
  for (int y = 0; y < side; y++) s.row[y] = c->x + c->place[(ptrdiff_t)y * side] + from;
#pragma GCC unroll 25
  for (int tap = 0; tap < side * side; tap++) s.weight[tap] = ALL(c->weight[tap]);
  int64_t done = 0;
  for (; done + AT_ONCE <= n + LANES - 1; done += AT_ONCE) {
#pragma GCC unroll 8
    for (int v = 0; v < MOST_VECTORS; v++) sum[v] = bias;
    if (side) add_square(&s, done, side, stride, MOST_VECTORS, sum);
    else add_any_window(c, from + done, MOST_VECTORS, sum);
#pragma GCC unroll 8
    for (int v = 0; v < MOST_VECTORS; v += VECTORS)
      store_tile(to, (done + v * WIDTH) / LANES, sum + v);
  }
  for (; done < n; done += LANES) {
    for (int v = 0; v < VECTORS; v++) sum[v] = bias;
    if (side) add_square(&s, done, side, stride, VECTORS, sum);
    else add_any_window(c, from + done, VECTORS, sum);
    store_tile(to, done / LANES, sum);
  }
}

#endif
#endif
