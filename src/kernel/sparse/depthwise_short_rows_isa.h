/* SPDX-License-Identifier: Apache-2.0
 * Sums of short rows of results, for the depthwise convolution in CHW and PC16P. Rows of the input
 * are whole vectors, or two rows are in a vector. So each is loaded once for all results below each
 * other that read it. Only depthwise_pixels_isa.h includes this. */
#ifndef LACI_KERNEL_SPARSE_DEPTHWISE_SHORT_ROWS_ISA_H
#define LACI_KERNEL_SPARSE_DEPTHWISE_SHORT_ROWS_ISA_H

#include <stdbool.h>
#include <stddef.h>

#include "kernel/sparse/depthwise_long_row_isa.h"

#if defined(__AVX2__) || defined(__ARM_NEON) /* there are vectors */

enum {
  TILES = LACI_DEPTHWISE_TILES,
  MOST_SHORT = WIDTH == 8 ? 4 : 7, /* maximum number of vectors that are computed at once: registers
                                      hold them and the weights of 3 x 3 taps */
  FEW_SHORT = WIDTH == 8 ? 2 : 4,
};

/* Can rows of this distance be computed as short rows? */
static bool has_short_rows(int64_t row_stride) {
  return row_stride == LANES / 2 || row_stride == LANES;
}

/* ---- Sums ---- */

/* Keeps the compiler from loading a vector again for each sum, where that is in two cache lines. */
#if defined(__x86_64__)
#define KEEP_IN_REGISTER(v) __asm__("" : "+v"(v))
#else
#define KEEP_IN_REGISTER(v) __asm__("" : "+w"(v))
#endif

/* What the vectors of a channel read, and where these are. */
typedef struct vector_column {
  const float *x; /* what the first tap of the first result reads */
  const vector *weight;
  vector bias;
  int64_t apart; /* number of floats from a row to the next */
  int64_t step;  /* number of positions from a vector to that below it */
} vector_column;

/* Computes n vectors of sums that are below each other, of a window of side x side taps without
 * stride. at: position of the first in the long row. rows: number of rows in a vector. */
INLINE void sum_column(const vector_column *c, int64_t at, const int side, const int rows,
                       const int n, vector *sum) {
#pragma GCC unroll 7
  for (int v = 0; v < n; v++) sum[v] = c->bias;
#pragma GCC unroll 17
  for (int y = 0; y < (n - 1) * rows + side; y++) {
    vector taps[MOST_SIDE];
#pragma GCC unroll 5
    for (int t = 0; t < side; t++) {
      taps[t] = LOAD(c->x + at + y * c->apart + t);
      KEEP_IN_REGISTER(taps[t]);
    }
#pragma GCC unroll 5
    for (int row = 0; row < side; row++) {
      const int to = (y - row) / rows;
      if (y < row || (y - row) % rows != 0 || to >= n) continue;
#pragma GCC unroll 5
      for (int t = 0; t < side; t++) sum[to] = FMA(c->weight[row * side + t], taps[t], sum[to]);
    }
  }
}

/* ---- Results ---- */

/* Where vectors are stored. If a vector is no whole tile, it is first written to a line. */
typedef struct short_target {
  const pixel_target *tiles;
  float *line;
} short_target;

/* Computes n vectors below each other, and stores them. */
INLINE void compute_column(const vector_column *c, int64_t at, const int side, const int rows,
                           const int n, const short_target *to) {
  vector sum[MOST_SHORT];
  sum_column(c, at, side, rows, n, sum);
#pragma GCC unroll 7
  for (int v = 0; v < n; v++, at += c->step) {
    if (VECTORS == 1) store_tile(to->tiles, at / LANES, &sum[v]);
    else STORE(to->line + at, sum[v]);
  }
}

/* Computes all vectors of n tiles. rows: number of rows in a vector, or 1. */
INLINE void sum_columns(const channel_input *c, int64_t apart, int64_t n, const int side,
                        const int rows, const short_target *to) {
  vector weight[MOST_SIDE * MOST_SIDE];
  const vector_column each = {c->x + c->place[0], weight, ALL(c->bias), apart,
                              apart > WIDTH ? apart : WIDTH};
#pragma GCC unroll 25
  for (int tap = 0; tap < side * side; tap++) weight[tap] = ALL(c->weight[tap]);
  for (int64_t first = 0; first < each.step; first += WIDTH) {
    int64_t at = first;
    for (; at + (MOST_SHORT - 1) * each.step < n * LANES; at += MOST_SHORT * each.step)
      compute_column(&each, at, side, rows, MOST_SHORT, to);
    for (; at + (FEW_SHORT - 1) * each.step < n * LANES; at += FEW_SHORT * each.step)
      compute_column(&each, at, side, rows, FEW_SHORT, to);
    for (; at < n * LANES; at += each.step) compute_column(&each, at, side, rows, 1, to);
  }
}

/* Computes n tiles of a channel. apart: number of floats from row to row. */
INLINE void sum_short_rows(const channel_input *c, int64_t apart, int64_t n, const int side,
                           const pixel_target *to) {
  float line[TILES * LANES];
  const short_target vectors = {to, line};
  if (apart < WIDTH) sum_columns(c, apart, n, side, 2, &vectors);
  else sum_columns(c, apart, n, side, 1, &vectors);
  for (int64_t tile = 0; VECTORS > 1 && tile < n; tile++) {
    vector sum[VECTORS];
    for (int v = 0; v < VECTORS; v++) sum[v] = LOAD(line + tile * LANES + (ptrdiff_t)(v * WIDTH));
    store_tile(to, tile, sum);
  }
}

#endif
#endif
