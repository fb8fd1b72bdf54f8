/* SPDX-License-Identifier: Apache-2.0
 * The depthwise convolution of depthwise.h, compiled for every instruction set.
 *
 * Where lanes are pixels, some tiles of one channel are computed at a time. If windows do not
 * stride, all rows of results are computed as one long row, since each tap's pixels then make one
 * long row, too. Otherwise rows are computed one by one. If windows stride along a row, every
 * second pixel is gathered first, so that the pixels of a tap are neighbours. In HWC16N, some
 * pixels of a row are computed at a time, for some channels. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/min.h"
#include "kernel/sparse/depthwise.h"
#include "kernel/sparse/floats_isa.h"
#include "kernel/sparse/tile_isa.h"
#include "kernel/variants.h"

#define INLINE static inline __attribute__((always_inline))

enum {
  LANES = LACI_SPARSE_LANES,
  VECTORS = LANES / WIDTH,
  MOST_VECTORS = WIDTH == 16 ? 4 : 32 / WIDTH, /* maximum number of vectors of sums that registers
                                                  hold */
  TAPS = LACI_DEPTHWISE_MOST_TAPS,
  CHANNELS = 16, /* number of channels that are computed at a time */
  SIDE = 4,      /* number of neighbouring pixels that are computed at once, so that each weight is
                    loaded once for all */
};

/* ---- Pixels ---- */

/* The operands of a channel's sums. The rows of results are one long row, and its position i reads
 * tap[t][i] for each tap t. */
typedef struct channel {
  const float *tap[TAPS], *weight;
  int n_taps;
  float bias;
} channel;

/* The operands of a channel's sums: a local copy that the compiler keeps in registers. */
typedef struct register_operands {
  const float *tap[TAPS];
  vector weight[TAPS], bias;
} register_operands;

/* Computes n vectors of sums from position `at` of the long row. apart: number of floats in `to`
 * between one 16 sums and the next 16. */
INLINE void sum_products_of_vectors(const register_operands *h, int64_t at, const int n_taps,
                                    const int n, int64_t apart, float *to) {
  vector sum[MOST_VECTORS];
#pragma GCC unroll 8
  for (int v = 0; v < n; v++) sum[v] = h->bias;
#pragma GCC unroll 9
  for (int t = 0; t < n_taps; t++) {
#pragma GCC unroll 8
    for (int v = 0; v < n; v++) {
      sum[v] = FMA(h->weight[t], LOAD(h->tap[t] + at + (ptrdiff_t)(v * WIDTH)), sum[v]);
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < n; v++) {
    STORE(to + v / VECTORS * apart + (ptrdiff_t)(v % VECTORS * WIDTH), sum[v]);
  }
}

/* Computes n contiguous sums, from position `from` of the long row on. Up to 15 more sums are
 * written after them. */
INLINE void sum_products_of_span(const channel *c, int64_t from, const int n_taps, int64_t n,
                                 int64_t apart, float *to) {
  enum { AT_ONCE = MOST_VECTORS * WIDTH };
  register_operands h = {.bias = ALL(c->bias)};
#pragma GCC unroll 9
  for (int t = 0; t < n_taps; t++) {
    h.tap[t] = c->tap[t] + from;
    h.weight[t] = ALL(c->weight[t]);
  }
  int64_t done = 0;
  for (; done + AT_ONCE <= n; done += AT_ONCE, to += AT_ONCE / LANES * apart) {
    sum_products_of_vectors(&h, done, n_taps, MOST_VECTORS, apart, to);
  }
  for (; done < n; done += LANES, to += apart)
    sum_products_of_vectors(&h, done, n_taps, VECTORS, apart, to);
}

static void sum_products_of_long_row(const channel *c, int64_t from, int64_t n, int64_t apart,
                                     float *to) {
  if (c->n_taps == 9) sum_products_of_span(c, from, 9, n, apart, to);
  else sum_products_of_span(c, from, c->n_taps, n, apart, to);
}

/* Copies the floats at even positions of from[n] to `even`, and those at odd positions to `odd`. It
 * reads up to 15 floats after the n, and writes up to 7 more in each result. */
static void split_even_odd(const float *from, int64_t n, float *even, float *odd) {
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

/* Computes the sums of a channel for some tiles of an image block. apart: number of floats in `to`
 * from one tile to the next. */
static void sum_tiles_of_channel(const laci_depthwise *d, const reading *r, const channel *c,
                                 int64_t apart, float *to) {
  const int64_t width = d->out.row_stride;
  float line[(LACI_DEPTHWISE_TILES + 1) * LANES];
  if (r->row_stride == width) {
    sum_products_of_long_row(c, r->first, r->last - r->first, apart, to);
    return;
  }
  memset(line, 0, sizeof line); /* positions between two rows of results stay zero */
  for (int64_t at = r->first, y = 0; at < r->last; at = ++y * width) {
    const int64_t x = at - y * width, end = y * width + d->window.out_w;
    const int64_t n = laci_min(end, r->last) - at;
    if (n > 0) sum_products_of_long_row(c, y * r->row_stride + x, n, LANES, line + (at - r->first));
  }
  for (int64_t at = 0; at < r->last - r->first; at += LANES, to += apart) {
    memcpy(to, line + at, LANES * sizeof *to);
  }
}

/* Computes the sums of a part in CHW or PC16P, where lanes are pixels. They are written as
 * [tile][channel][16]. */
static void sum_channels_of_pixels(const laci_depthwise *d, const laci_sparse_operands *o,
                                   const laci_sparse_part *part, float *phases, float *sums) {
  const int64_t n = part->row_last - part->row_first;
  const reading r = describe_tile_inputs(d, part);
  channel c = {.n_taps = (int)r.n_taps};
  for (int64_t at = 0; at < n; at++) {
    const int64_t row = part->row_first + at;
    const float *x = o->x + part->tiles[part->tile_first].in + row * d->in.channel_stride;
    if (r.phase_stride) copy_phases(d, &r, x, phases);
    for (int t = 0; t < c.n_taps; t++) c.tap[t] = (r.phase_stride ? phases : x) + r.place[t];
    c.weight = o->weight + row * r.n_taps;
    c.bias = o->bias[row];
    sum_tiles_of_channel(d, &r, &c, n * LANES, sums + at * LANES);
  }
}

/* ---- HWC16N ---- */

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

/* Is clipping all that follows the sums, and are all lanes of the tiles results? */
static bool stores_only_clipped_results(const laci_sparse_operands *o,
                                        const laci_sparse_part *part) {
  bool all = true;
  for (int64_t tile = part->tile_first; tile < part->tile_last; tile++) {
    all = all && laci_sparse_is_whole_tile(part->tiles[tile].lanes);
  }
  return all && !o->residual && laci_sparse_is_only_clipped(o);
}

/* ---- Both layouts ---- */

/* Computes a part, 16 channels at a time. So their input rows are still in the cache when the next
 * row of results reads them. */
void LACI_VARIANT(laci_depthwise_multiply)(const laci_depthwise *d, const laci_sparse_operands *o,
                                           const laci_sparse_part *part) {
  const bool images = d->out.format == LACI_FORMAT_HWC16N;
  float phases[LACI_DEPTHWISE_PHASES], sums[LACI_DEPTHWISE_TILES * CHANNELS * LANES];
  laci_sparse_part some = {.tiles = part->tiles};
  for (int64_t c = part->row_first; c < part->row_last; c = some.row_last) {
    some.row_first = c;
    some.row_last = laci_min(c + CHANNELS, part->row_last);
    for (int64_t tile = part->tile_first; tile < part->tile_last; tile = some.tile_last) {
      const int64_t after = (tile / d->tiles_per_block + 1) * d->tiles_per_block; /* the end of the
                                                                                     image block */
      some.tile_first = tile;
      some.tile_last = laci_min(tile + d->tiles_at_once, laci_min(after, part->tile_last));
      if (images && stores_only_clipped_results(o, &some)) {
        sum_channels_of_images(d, o, &some, NULL);
        continue;
      }
      if (images) sum_channels_of_images(d, o, &some, sums);
      else sum_channels_of_pixels(d, o, &some, phases, sums);
      LACI_VARIANT(laci_sparse_finish)(o, d->out.channel_stride, LACI_SPARSE_F32, &some, sums);
    }
  }
}
