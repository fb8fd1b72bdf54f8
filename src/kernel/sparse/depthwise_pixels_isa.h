/* SPDX-License-Identifier: Apache-2.0
 * The depthwise convolution of depthwise.h in CHW and PC16P, for every instruction set. Lanes are
 * pixels, and some tiles of one channel are computed at a time. If windows do not stride, all rows
 * of results are computed as one long row. If windows stride along a row, every second pixel is
 * gathered first, so that the pixels of a tap are neighbours. Only depthwise_isa.c includes
 * this. */
#ifndef LACI_KERNEL_SPARSE_DEPTHWISE_PIXELS_ISA_H
#define LACI_KERNEL_SPARSE_DEPTHWISE_PIXELS_ISA_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/divide.h"
#include "base/min.h"
#include "kernel/sparse/depthwise.h"
#include "kernel/sparse/depthwise_long_row_isa.h"
#include "kernel/sparse/depthwise_short_rows_isa.h"
#include "kernel/sparse/floats_isa.h"

#if defined(__AVX2__) || defined(__ARM_NEON) /* there are vectors */

enum {
  TAPS = LACI_DEPTHWISE_MOST_TAPS,
  WIDE = 1024, /* size in floats of an array for sums of rows that have gaps between them */
};

/* ---- What windows read ---- */

/* Copies the floats at even positions of from[n] to `even`, and those at odd positions to `odd`. It
 * reads up to 15 floats after the n, and writes up to 15 more in each result. */
INLINE void split_even_odd(const float *from, int64_t n, float *even, float *odd) {
#if defined(__AVX512F__)
  for (int64_t at = 0; 2 * at < n; at += LANES) {
    const float *first = from + 2 * at;
    const vector a = LOAD(first);
    const vector b = 2 * at + LANES < n ? LOAD(first + LANES) : _mm512_setzero_ps();
    STORE(even + at, EVEN(a, b));
    STORE(odd + at, ODD(a, b));
  }
#else
  for (int64_t at = 0; 2 * at < n; at += 8) {
#if defined(__AVX2__)
    const __m256i order = _mm256_setr_epi32(0, 1, 4, 5, 2, 3, 6, 7);
    const __m256 a = _mm256_loadu_ps(from + 2 * at), b = _mm256_loadu_ps(from + 2 * at + 8);
    _mm256_storeu_ps(even + at, _mm256_permutevar8x32_ps(_mm256_shuffle_ps(a, b, 0x88), order));
    _mm256_storeu_ps(odd + at, _mm256_permutevar8x32_ps(_mm256_shuffle_ps(a, b, 0xDD), order));
#else
    for (int64_t i = at; i < at + 8; i += 4) {
      const float32x4x2_t both = vld2q_f32(from + 2 * i);
      vst1q_f32(even + i, both.val[0]);
      vst1q_f32(odd + i, both.val[1]);
    }
#endif
  }
#endif
}

/* Some tiles of an image block, and where each tap of a channel finds its pixels. For the result in
 * row y and column x, that is place[tap] + y * row_stride + x, in the channel or in its phases. */
typedef struct reading {
  int64_t first_row, n_rows; /* range of rows of results that contain the tiles */
  int64_t first, last;       /* range of positions in the long row of results, counted from the
                                beginning of first_row */
  int64_t n_taps, place[TAPS], row_stride;
  int64_t phase_stride; /* number of floats from one phase (every second pixel of some rows) to the
                           next; 0: the channel is read directly, without phases */
} reading;

/* Returns the offset of a row of pixels in a channel. Row 0 is the first row that the windows of
 * the results in r->first_row read. */
static int64_t row_offset(const laci_depthwise *d, const reading *r, int64_t row) {
  const laci_sparse_window *g = &d->window;
  const int64_t y = r->first_row * g->stride_h - g->pad_top + row;
  return (y + d->in.top) * d->in.row_stride + d->in.left - g->pad_left;
}

/* Sets the position of each tap's pixels. Where windows stride along a row, copy_phases first
 * copies the input to phases[row % stride_h][column % 2][row / stride_h][column / 2], so that the
 * pixels of a tap are neighbours. */
static void set_tap_positions(const laci_depthwise *d, reading *r) {
  const laci_sparse_window *g = &d->window;
  const bool phases = g->stride_w > 1;
  const int64_t half = laci_depthwise_phase_width(g);
  r->row_stride = g->stride_h * d->in.row_stride;
  if (phases) r->row_stride = d->out.row_stride > half ? d->out.row_stride : half;
  r->phase_stride = phases ? laci_depthwise_phase_floats(d, r->n_rows) : 0;
  r->n_taps = g->kernel_h * g->kernel_w;
  for (int64_t row = 0, t = 0; row < g->kernel_h; row++) {
    const int64_t y = row * g->dilation_h;
    for (int64_t column = 0; column < g->kernel_w; column++, t++) {
      const int64_t x = column * g->dilation_w, phase = y % g->stride_h * 2 + x % 2;
      r->place[t] = row_offset(d, r, y) + x;
      if (phases) r->place[t] = phase * r->phase_stride + y / g->stride_h * r->row_stride + x / 2;
    }
  }
}

static reading describe_tile_inputs(const laci_depthwise *d, const laci_sparse_part *part) {
  const laci_sparse_window *g = &d->window;
  const int64_t width = d->out.row_stride, length = (g->out_h - 1) * width + g->out_w;
  const int64_t begin = part->tile_first % d->tiles_per_block * LANES;
  const int64_t end = begin + (part->tile_last - part->tile_first) * LANES;
  const int64_t last = laci_min(end, length), row = begin / width;
  reading r = {.first_row = row,
               .n_rows = (last - 1) / width - row + 1,
               .first = begin - row * width,
               .last = last - row * width};
  set_tap_positions(d, &r);
  return r;
}

static void copy_phases(const laci_depthwise *d, const reading *r, const float *x, float *phases) {
  const laci_sparse_window *g = &d->window;
  const int64_t n = (r->n_rows - 1) * g->stride_h + (g->kernel_h - 1) * g->dilation_h + 1;
  const int64_t n_floats = 2 * (g->out_w - 1) + (g->kernel_w - 1) * g->dilation_w + 1;
  int64_t phase = 0, at = 0;
  for (int64_t row = 0; row < n; row++) {
    float *even = phases + 2 * phase * r->phase_stride + at;
    split_even_odd(x + row_offset(d, r, row), n_floats, even, even + r->phase_stride);
    if (++phase < g->stride_h) continue;
    phase = 0;
    at += r->row_stride;
  }
}

/* ---- Channels ---- */

/* Computes the sums of a channel in `wide`, whose rows are row_stride apart as those of the input
 * are. Returns false if there are too many for that array. */
INLINE bool sum_wide_rows(const laci_depthwise *d, const reading *r, const channel_input *c,
                          const int side, const int stride, float *wide) {
  const int64_t last = r->last - (r->n_rows - 1) * d->out.row_stride;
  const int64_t end = (r->n_rows - 1) * r->row_stride + laci_min(last, d->window.out_w);
  const pixel_target to = {.to = wide, .apart = LANES};
  if (end - r->first + LANES > WIDE || r->row_stride >= 2 * d->out.row_stride) return false;
  sum_long_row(c, r->first, end - r->first, side, stride, &to);
  return true;
}

/* Computes the sums of a channel in `line`, where rows are as far apart as those of the results. */
INLINE void sum_separate_rows(const laci_depthwise *d, const reading *r, const channel_input *c,
                              const int side, const int stride, float *line) {
  const int64_t width = d->out.row_stride;
  float wide[WIDE];
  const bool all = sum_wide_rows(d, r, c, side, stride, wide);
  for (int64_t at = r->first, y = 0; at < r->last; at = ++y * width) {
    const int64_t x = at - y * width, end = y * width + d->window.out_w;
    const int64_t n = laci_min(end, r->last) - at, from = y * r->row_stride + x;
    float *row = line + (at - r->first);
    const pixel_target to = {.to = row, .apart = LANES};
    if (n > 0 && !all) sum_long_row(c, from, n, side, stride, &to);
    for (int64_t i = 0; i < n && all; i += LANES)
      memcpy(row + i, wide + (from + i - r->first), LANES * sizeof *row);
  }
}

/* Computes the sums of a channel for some tiles of an image block. */
INLINE void sum_tiles_of_channel(const laci_depthwise *d, const reading *r, const channel_input *c,
                                 const int side, const int stride, const pixel_target *to) {
  float line[(TILES + 1) * LANES];
  const int64_t n = r->last - r->first;
  const bool is_one_row = r->row_stride == d->out.row_stride;
  if (is_one_row && side && stride == 1 && has_short_rows(r->row_stride)) {
    sum_short_rows(c, r->row_stride, laci_ceil_div(n, LANES), side, to);
    return;
  }
  if (is_one_row) {
    sum_long_row(c, r->first, n, side, stride, to);
    return;
  }
  /* positions between two rows of results are zero */
  if (d->out.row_stride > d->window.out_w) memset(line, 0, sizeof line);
  sum_separate_rows(d, r, c, side, stride, line);
  for (int64_t at = 0; at < n; at += LANES) {
    vector sum[VECTORS];
    for (int v = 0; v < VECTORS; v++) sum[v] = LOAD(line + at + (ptrdiff_t)(v * WIDTH));
    store_tile(to, at / LANES, sum);
  }
}

/* Computes some channels of some tiles in CHW or PC16P. side, stride: as in sum_long_row. */
INLINE void sum_channels_of_window(const laci_depthwise *d, const laci_sparse_operands *o,
                                   const laci_sparse_part *part, const int side, const int stride,
                                   float *sums) {
  const int64_t n = part->row_last - part->row_first;
  const reading r = describe_tile_inputs(d, part);
  const laci_sparse_tile *tiles = part->tiles + part->tile_first;
  channel_input c = {.place = r.place, .phase_stride = r.phase_stride, .n_taps = r.n_taps};
  pixel_target to = {
      .apart = n * LANES, .tiles = sums ? NULL : tiles, .low = o->low, .high = o->high};
  float phases[LACI_DEPTHWISE_PHASES];
  for (int64_t at = 0; at < n; at++) {
    const int64_t row = part->row_first + at;
    const float *x = o->x + tiles->in + row * d->in.channel_stride;
    if (r.phase_stride) copy_phases(d, &r, x, phases);
    c.x = r.phase_stride ? phases : x;
    c.weight = o->weight + row * r.n_taps;
    c.bias = o->bias[row];
    to.to = sums ? sums + at * LANES : o->y + row * d->out.channel_stride;
    sum_tiles_of_channel(d, &r, &c, side, stride, &to);
  }
}

#define SUM_CHANNELS(side, stride)                                                        \
  static void sum_channels_##side##_##stride(const laci_depthwise *d,                     \
                                             const laci_sparse_operands *o,               \
                                             const laci_sparse_part *part, float *sums) { \
    sum_channels_of_window(d, o, part, side, stride, sums);                               \
  }
SUM_CHANNELS(3, 1)
SUM_CHANNELS(3, 2)
SUM_CHANNELS(5, 1)
SUM_CHANNELS(5, 2)
SUM_CHANNELS(0, 0)
#undef SUM_CHANNELS

/* Computes some channels of some tiles in CHW or PC16P. The sums are stored as
 * [tile][channel][16] in `sums`. If sums is NULL, they are clipped and stored as results. */
static void sum_channels_of_pixels(const laci_depthwise *d, const laci_sparse_operands *o,
                                   const laci_sparse_part *part, float *sums) {
  const laci_sparse_window *g = &d->window;
  const bool square = g->kernel_h == g->kernel_w && g->dilation_h == 1 && g->dilation_w == 1 &&
                      g->stride_h == g->stride_w;
  const int64_t side = square ? g->kernel_w : 0;
  if (side == 3 && g->stride_w == 1) sum_channels_3_1(d, o, part, sums);
  else if (side == 3) sum_channels_3_2(d, o, part, sums);
  else if (side == 5 && g->stride_w == 1) sum_channels_5_1(d, o, part, sums);
  else if (side == 5) sum_channels_5_2(d, o, part, sums);
  else sum_channels_0_0(d, o, part, sums);
}

#endif
#endif
