/* SPDX-License-Identifier: Apache-2.0
 * winograd4.h for every instruction set. Of pixels, a row of tiles at a time: the vertical
 * transform goes along rows of pixels, and for the horizontal one every fourth pixel is put
 * together, so that lanes are neighbouring tiles. Of images, lanes are those, and nothing moves. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/least.h"
#include "kernel/sparse/floats_isa.h"
#include "kernel/sparse/winograd4.h"

#define INLINE static inline __attribute__((always_inline))

enum {
  LANES = LACI_SPARSE_LANES,
  SIDE = LACI_WINOGRAD4_SIDE,
  READ = LACI_WINOGRAD4_READ,
  POINTS = LACI_WINOGRAD4_POINTS,
  LINE = LACI_WINOGRAD4_LINE,
  VECTORS = LANES / WIDTH,
  ROWS = WIDTH == 16 ? 12 : 6,    /* winograd4.c */
  AT_ONCE = WIDTH == 4 ? 4 : 2,   /* vectors of these rows' sums */
  CHUNK = SIDE * WIDTH,           /* results of a row, or pixels, of a vector of tiles */
  MOST = LINE / SIDE + 2 * CHUNK, /* floats of a row */
  TOGETHER = 8,                   /* channels of a tile of images */
};

/* ---- The transforms ---- */

/* B' d */
INLINE void six_points(vector d[READ]) {
  const vector a = ALL(LACI_WINOGRAD4_A), b = ALL(LACI_WINOGRAD4_B);
  const vector a2 = ALL(-LACI_WINOGRAD4_A2), b2 = ALL(-LACI_WINOGRAD4_B2);
  const vector a2b2 = ALL(LACI_WINOGRAD4_A2B2), both = ALL(-LACI_WINOGRAD4_A2_AND_B2);
  const vector even_a = FMA(b2, d[2], d[4]), odd_a = MUL(a, FMA(b2, d[1], d[3]));
  const vector even_b = FMA(a2, d[2], d[4]), odd_b = MUL(b, FMA(a2, d[1], d[3]));
  d[0] = FMA(a2b2, d[0], FMA(both, d[2], d[4]));
  d[5] = FMA(a2b2, d[1], FMA(both, d[3], d[5]));
  d[1] = ADD(even_a, odd_a);
  d[2] = SUB(even_a, odd_a);
  d[3] = ADD(even_b, odd_b);
  d[4] = SUB(even_b, odd_b);
}

/* A' m, into the first four */
INLINE void four_results(vector m[READ]) {
  const vector sum_a = ADD(m[1], m[2]), less_a = SUB(m[1], m[2]);
  const vector sum_b = ADD(m[3], m[4]), less_b = SUB(m[3], m[4]);
  m[0] = ADD(m[0], ADD(sum_a, sum_b));
  m[1] = FMA(ALL(LACI_WINOGRAD4_A), less_a, MUL(ALL(LACI_WINOGRAD4_B), less_b));
  m[2] = FMA(ALL(LACI_WINOGRAD4_A2), sum_a, MUL(ALL(LACI_WINOGRAD4_B2), sum_b));
  m[3] = FMA(ALL(LACI_WINOGRAD4_A3), less_a, FMA(ALL(LACI_WINOGRAD4_B3), less_b, m[5]));
}

/* ---- Every fourth ---- */

#if defined(__ARM_NEON)
/* Vector k of the result is each fourth float, from the k-th one on. */
INLINE void take_apart(const float *from, vector to[SIDE]) {
  const float32x4x4_t all = vld4q_f32(from);
  for (int k = 0; k < SIDE; k++) to[k] = all.val[k];
}
INLINE void put_together(const vector from[SIDE], float *to) {
  vst4q_f32(to, (float32x4x4_t){{from[0], from[1], from[2], from[3]}});
}
#elif defined(__AVX512F__)
/* Rows and columns of four floats in each quarter change places. */
INLINE void turn_quarters(vector v[SIDE]) {
  const vector low = _mm512_unpacklo_ps(v[0], v[1]), low2 = _mm512_unpacklo_ps(v[2], v[3]);
  const vector high = _mm512_unpackhi_ps(v[0], v[1]), high2 = _mm512_unpackhi_ps(v[2], v[3]);
  v[0] = _mm512_shuffle_ps(low, low2, 0x44);
  v[1] = _mm512_shuffle_ps(low, low2, 0xEE);
  v[2] = _mm512_shuffle_ps(high, high2, 0x44);
  v[3] = _mm512_shuffle_ps(high, high2, 0xEE);
}
/* Vector i gets the i-th quarter of each. */
INLINE void sort_quarters(vector v[SIDE]) {
  const vector a = _mm512_shuffle_f32x4(v[0], v[1], 0x44);
  const vector b = _mm512_shuffle_f32x4(v[2], v[3], 0x44);
  const vector c = _mm512_shuffle_f32x4(v[0], v[1], 0xEE);
  const vector d = _mm512_shuffle_f32x4(v[2], v[3], 0xEE);
  v[0] = _mm512_shuffle_f32x4(a, b, 0x88);
  v[1] = _mm512_shuffle_f32x4(a, b, 0xDD);
  v[2] = _mm512_shuffle_f32x4(c, d, 0x88);
  v[3] = _mm512_shuffle_f32x4(c, d, 0xDD);
}
INLINE void take_apart(const float *from, vector to[SIDE]) {
  for (int k = 0; k < SIDE; k++) to[k] = LOAD(from + (ptrdiff_t)k * WIDTH);
  sort_quarters(to);
  turn_quarters(to);
}
INLINE void put_together(const vector from[SIDE], float *to) {
  vector v[SIDE] = {from[0], from[1], from[2], from[3]};
  turn_quarters(v);
  sort_quarters(v);
  for (int k = 0; k < SIDE; k++) STORE(to + (ptrdiff_t)k * WIDTH, v[k]);
}
#else
INLINE void turn_halves(vector v[SIDE]) {
  const vector low = _mm256_unpacklo_ps(v[0], v[1]), low2 = _mm256_unpacklo_ps(v[2], v[3]);
  const vector high = _mm256_unpackhi_ps(v[0], v[1]), high2 = _mm256_unpackhi_ps(v[2], v[3]);
  v[0] = _mm256_shuffle_ps(low, low2, 0x44);
  v[1] = _mm256_shuffle_ps(low, low2, 0xEE);
  v[2] = _mm256_shuffle_ps(high, high2, 0x44);
  v[3] = _mm256_shuffle_ps(high, high2, 0xEE);
}
INLINE void take_apart(const float *from, vector to[SIDE]) {
  for (int k = 0; k < SIDE; k++) {
    const __m128 lower = _mm_loadu_ps(from + (ptrdiff_t)k * SIDE);
    const __m128 upper = _mm_loadu_ps(from + (ptrdiff_t)(SIDE + k) * SIDE);
    to[k] = _mm256_insertf128_ps(_mm256_castps128_ps256(lower), upper, 1);
  }
  turn_halves(to);
}
INLINE void put_together(const vector from[SIDE], float *to) {
  vector v[SIDE] = {from[0], from[1], from[2], from[3]};
  turn_halves(v);
  for (int k = 0; k < SIDE; k += 2) {
    STORE(to + (ptrdiff_t)k * SIDE, _mm256_permute2f128_ps(v[k], v[k + 1], 0x20));
    STORE(to + (ptrdiff_t)(SIDE + k) * SIDE, _mm256_permute2f128_ps(v[k], v[k + 1], 0x31));
  }
}
#endif

/* ---- Points of pixels ---- */

static const float zeros[MOST];

/* The vertical transform of the pixels that a row of tiles reads, with zeros behind them. */
static void transform_down(const laci_winograd4 *w, const float *plane, int64_t first_row,
                           float to[READ][MOST]) {
  const laci_sparse_window *g = &w->window;
  const int64_t n = g->w + g->pad_left, end = (w->tiles_w + 1 + WIDTH) * SIDE;
  const float *row[READ];
  for (int i = 0; i < READ; i++) {
    const int64_t y = first_row + i;
    const bool inside = y >= 0 && y < g->h;
    row[i] = inside ? plane + laci_sparse_at(&w->in, 0, y, -g->pad_left) : zeros;
  }
  for (int64_t x = 0; x < n; x += WIDTH) {
    vector d[READ];
    for (int i = 0; i < READ; i++) d[i] = LOAD(row[i] + x);
    six_points(d);
    for (int i = 0; i < READ; i++) STORE(to[i] + x, d[i]);
  }
  for (int i = 0; i < READ && n < end; i++) memset(to[i] + n, 0, (size_t)(end - n) * sizeof(float));
}

/* Points of a row of it. */
static void transform_along(const float *row, int64_t tiles, int64_t apart, float *to) {
  float fourth[SIDE][MOST / SIDE];
  for (int64_t t = 0; t < tiles + 1; t += WIDTH) {
    vector d[SIDE];
    take_apart(row + SIDE * t, d);
    for (int k = 0; k < SIDE; k++) STORE(fourth[k] + t, d[k]);
  }
  for (int64_t t = 0; t < tiles; t += WIDTH) {
    vector d[READ];
    for (int k = 0; k < SIDE; k++) d[k] = LOAD(fourth[k] + t);
    for (int k = SIDE; k < READ; k++) d[k] = LOAD(fourth[k - SIDE] + t + 1);
    six_points(d);
    for (int k = 0; k < READ; k++) STORE(to + k * apart + t, d[k]);
  }
}

static void transform_pixels(const laci_winograd4 *w, const laci_winograd4_block *b, const float *x,
                             const int64_t first_last[2], float *points) {
  const int64_t apart = laci_winograd4_apart(b, w->window.channels_in);
  float rows[READ][MOST];
  for (int64_t c = first_last[0]; c < first_last[1]; c++) {
    float *to = points + c * b->stride;
    for (int64_t unit = b->first; unit < b->last; unit++, to += w->unit) {
      const float *plane = x + unit / w->tiles_h * w->in.n_floats + c * w->in.channel_stride;
      transform_down(w, plane, unit % w->tiles_h * SIDE - w->window.pad_top, rows);
      for (int i = 0; i < READ; i++) {
        transform_along(rows[i], w->tiles_w, apart, to + i * READ * apart);
      }
    }
    for (int p = 0; p < POINTS; p++) STORE(to + p * apart, ALL(0)); /* of the last vector */
  }
}

/* ---- Points of images ---- */

/* Where the pixels of a tile lie; there are none around a picture. */
typedef struct pixels {
  const float *at[POINTS];
  int64_t next[POINTS]; /* to the next channel */
} pixels;

/* A tile among those of all pictures. */
typedef struct tile {
  int64_t picture, y, x; /* its first result */
} tile;

static tile tile_of(const laci_winograd4 *w, int64_t unit) {
  const int64_t each = w->tiles_h * w->tiles_w;
  return (tile){unit / each, unit % each / w->tiles_w * SIDE, unit % w->tiles_w * SIDE};
}

static pixels pixels_of(const laci_winograd4 *w, const float *x, int64_t unit) {
  const laci_sparse_window *g = &w->window;
  const tile t = tile_of(w, unit);
  pixels p;
  for (int at = 0; at < POINTS; at++) {
    const int64_t row = t.y - g->pad_top + at / READ, column = t.x - g->pad_left + at % READ;
    const bool inside = row >= 0 && row < g->h && column >= 0 && column < g->w;
    const float *picture = x + t.picture * w->in.n_floats;
    p.at[at] = inside ? picture + laci_sparse_at(&w->in, 0, row, column) : zeros;
    p.next[at] = inside ? w->in.channel_stride : 0;
  }
  return p;
}

static void transform_images(const laci_winograd4 *w, const laci_winograd4_block *b, const float *x,
                             const int64_t first_last[2], float *points) {
  enum { AHEAD = 4 }; /* channels */
  const int64_t apart = laci_winograd4_apart(b, w->window.channels_in);
  for (int64_t unit = b->first; unit < b->last; unit++) {
    const pixels p = pixels_of(w, x, unit);
    float *to = points + (unit - b->first) * LANES + first_last[0] * b->stride;
    for (int64_t c = first_last[0]; c < first_last[1]; c++, to += b->stride) {
      for (int v = 0; v < VECTORS; v++) {
        vector d[READ][READ], column[READ];
        for (int j = 0; j < READ; j++) {
          for (int i = 0; i < READ; i++) {
            const int at = i * READ + j;
            const float *from = p.at[at] + c * p.next[at] + (ptrdiff_t)v * WIDTH;
            column[i] = LOAD(from);
            if (v == 0) __builtin_prefetch(from + AHEAD * p.next[at]);
          }
          six_points(column);
          for (int i = 0; i < READ; i++) d[i][j] = column[i];
        }
        for (int i = 0; i < READ; i++) {
          six_points(d[i]);
          for (int j = 0; j < READ; j++) {
            STORE(to + (i * READ + j) * apart + (ptrdiff_t)v * WIDTH, d[i][j]);
          }
        }
      }
    }
  }
}

void LACI_VARIANT(laci_winograd4_transform)(const laci_winograd4 *w, const laci_winograd4_block *b,
                                            const float *x, const int64_t first_last[2],
                                            float *points) {
  if (w->in.lanes == LACI_SPARSE_IMAGES) transform_images(w, b, x, first_last, points);
  else transform_pixels(w, b, x, first_last, points);
}

/* ---- Sums ---- */

/* What is multiplied: two groups of rows at most. */
typedef struct groups {
  const float *weight; /* of the first group, and of the second behind it */
  int64_t channels, stride;
  int64_t n_rows; /* that there are */
} groups;

/* Rows of n_groups, n vectors of lanes; both are constants where this is inlined. */
INLINE void add_channels(const groups *g, const float *x, const int n_groups, const int n,
                         float *to) {
  const int64_t channels = g->channels, stride = g->stride, behind = channels * ROWS;
  const float *weight = g->weight;
  vector sum[2 * ROWS][AT_ONCE];
#pragma GCC unroll 24
  for (int r = 0; r < n_groups * ROWS; r++) {
#pragma GCC unroll 4
    for (int v = 0; v < n; v++) sum[r][v] = ALL(0);
  }
  for (int64_t c = 0; c < channels; c++, x += stride, weight += ROWS) {
    vector lanes[AT_ONCE];
#pragma GCC unroll 4
    for (int v = 0; v < n; v++) lanes[v] = LOAD(x + (ptrdiff_t)v * WIDTH);
#pragma GCC unroll 24
    for (int r = 0; r < n_groups * ROWS; r++) {
      const vector each = ALL(weight[r / ROWS * behind + r % ROWS]);
#pragma GCC unroll 4
      for (int v = 0; v < n; v++) sum[r][v] = FMA(each, lanes[v], sum[r][v]);
    }
  }
#pragma GCC unroll 24
  for (int r = 0; r < n_groups * ROWS; r++) {
    if (r >= g->n_rows) break;
#pragma GCC unroll 4
    for (int v = 0; v < n; v++) STORE(to + r * stride + (ptrdiff_t)v * WIDTH, sum[r][v]);
  }
}

/* All rows of a point. What is left of its lanes is one vector wide: twice as many rows then. */
static void multiply_point(const groups *point, int64_t n_lanes, int64_t n_groups, const float *x,
                           float *y) {
  const int64_t whole = n_lanes / (AT_ONCE * WIDTH) * AT_ONCE * WIDTH;
  const int64_t each = point->channels * ROWS;
  groups g = *point;
  for (int64_t at = 0; at < n_groups; at++) {
    g.weight = point->weight + at * each;
    g.n_rows = point->n_rows - at * ROWS;
    for (int64_t lane = 0; lane < whole; lane += AT_ONCE * WIDTH) {
      add_channels(&g, x + lane, 1, AT_ONCE, y + at * ROWS * g.stride + lane);
    }
  }
  for (int64_t at = 0; at < n_groups; at += 2) {
    g.weight = point->weight + at * each;
    g.n_rows = point->n_rows - at * ROWS;
    for (int64_t lane = whole; lane < n_lanes; lane += WIDTH) {
      float *to = y + at * ROWS * g.stride + lane;
      if (at + 1 < n_groups) add_channels(&g, x + lane, 2, 1, to);
      else add_channels(&g, x + lane, 1, 1, to);
    }
  }
}

void LACI_VARIANT(laci_winograd4_multiply)(const laci_winograd4 *w, const laci_winograd4_block *b,
                                           const float *weights, const float *points,
                                           const int64_t first_last[2], float *sums) {
  const int64_t in = w->window.channels_in, out = w->window.channels_out;
  const int64_t n_groups = laci_winograd4_groups(w);
  for (int64_t p = first_last[0]; p < first_last[1]; p++) {
    const groups point = {weights + p * n_groups * in * ROWS, in, b->stride, out};
    multiply_point(&point, b->n_lanes, n_groups, points + p * laci_winograd4_apart(b, in),
                   sums + p * laci_winograd4_apart(b, out));
  }
}

/* ---- Results ---- */

/* Sixteen vectors out of 36 of sums, with the bias. */
INLINE void results_of(const float *sums, int64_t apart, float bias, vector to[SIDE][READ]) {
  for (int j = 0; j < READ; j++) {
    vector m[READ];
    for (int i = 0; i < READ; i++) m[i] = LOAD(sums + (i * READ + j) * apart);
    four_results(m);
    for (int i = 0; i < SIDE; i++) to[i][j] = m[i];
  }
  for (int i = 0; i < SIDE; i++) {
    four_results(to[i]);
    for (int j = 0; j < SIDE; j++) to[i][j] = ADD(to[i][j], ALL(bias));
  }
}

/* Rows of tiles behind each other in a picture, whose results are made at once. */
typedef struct band {
  int64_t n;                   /* rows of tiles */
  int64_t first_row, last_row; /* of results */
  int64_t begin, end;          /* places of the long row */
  int64_t n_tiles;             /* of results */
  laci_sparse_tile tiles[LINE / LANES];
} band;

/* A tile that the band before or behind has a part of is written lane by lane. */
static void cut_tile(laci_sparse_tile *t, uint64_t lanes) {
  if ((lanes & LACI_SPARSE_ALL_LANES) != LACI_SPARSE_ALL_LANES) t->lanes &= lanes;
}

static void place_band(const laci_winograd4 *w, int64_t unit, band *to) {
  const laci_sparse_window *g = &w->window;
  const int64_t stride = w->out.row_stride;
  to->first_row = unit % w->tiles_h * SIDE;
  to->last_row = laci_least(to->first_row + to->n * SIDE, g->out_h);
  to->begin = to->first_row * stride;
  to->end = to->last_row == g->out_h ? (g->out_h - 1) * stride + g->out_w : to->last_row * stride;
  const int64_t first = to->begin / LANES, last = (to->end + LANES - 1) / LANES;
  to->n_tiles = last - first;
  memcpy(to->tiles, w->results + unit / w->tiles_h * w->n_each + first,
         (size_t)to->n_tiles * sizeof *to->tiles);
  const uint64_t behind_begin = (uint64_t)LACI_SPARSE_ALL_LANES << to->begin % LANES;
  cut_tile(&to->tiles[0], behind_begin & LACI_SPARSE_ALL_LANES);
  if (to->last_row < g->out_h && to->end % LANES) {
    cut_tile(&to->tiles[to->n_tiles - 1], ((uint64_t)1 << to->end % LANES) - 1);
  }
}

INLINE vector clip(const laci_sparse_operands *o, vector v) {
  return SMALLER(ALL(o->high), LARGER(ALL(o->low), v));
}

/* A row of tiles. What its last one has too much of a row is written over by the next row, since
 * chunks go from right to left. */
static void put_rows(const laci_winograd4 *w, const laci_sparse_operands *o, const float *sums,
                     int64_t apart, const int64_t row_n[2], float *to) {
  for (int64_t t = (w->tiles_w - 1) / WIDTH * WIDTH; t >= 0; t -= WIDTH) {
    vector results[SIDE][READ];
    results_of(sums + t, apart, o->bias[row_n[0]], results);
    for (int64_t i = 0; i < row_n[1]; i++) {
      for (int j = 0; j < SIDE && !o->residual; j++) results[i][j] = clip(o, results[i][j]);
      put_together(results[i], to + i * w->out.row_stride + SIDE * t);
    }
  }
}

/* Where nothing is added, results are clipped before they are put together. */
static laci_sparse_operands behind_clip(const laci_sparse_operands *o) {
  laci_sparse_operands left = *o;
  if (!o->residual) {
    left.low = -INFINITY;
    left.high = INFINITY;
  }
  return left;
}

static void finish_pixels(const laci_winograd4 *w, const laci_winograd4_block *b, const float *sums,
                          const int64_t first_last[2], const laci_sparse_operands *o) {
  const int64_t apart = laci_winograd4_apart(b, w->window.channels_out);
  const int64_t stride = w->out.row_stride, most = (LINE - 2 * CHUNK) / (SIDE * stride);
  const laci_sparse_operands left = behind_clip(o);
  float line[LINE];
  band of;
  for (int64_t unit = b->first; unit < b->last; unit += of.n) {
    of.n = laci_least(laci_least(most, b->last - unit), w->tiles_h - unit % w->tiles_h);
    place_band(w, unit, &of);
    for (int64_t row = first_last[0]; row < first_last[1]; row++) {
      const float *from = sums + row * b->stride + (unit - b->first) * w->unit;
      float *to = line + of.begin % LANES;
      for (int64_t y = of.first_row; y < of.last_row; y += SIDE, from += w->unit) {
        const int64_t row_n[2] = {row, laci_least(SIDE, of.last_row - y)};
        put_rows(w, o, from, apart, row_n, to);
        to += SIDE * stride;
      }
      const laci_sparse_part part = {of.tiles, 0, of.n_tiles, row, row + 1};
      LACI_VARIANT(laci_sparse_finish)(&left, w->out.channel_stride, LACI_SPARSE_F32, &part, line);
    }
  }
}

/* A tile of 16 images: some channels of it, its first result among all, and how many there are. */
typedef struct tile_part {
  int64_t channel_first, channel_last, result, n_rows, n_columns;
} tile_part;

/* One pixel's results of n channels, with nothing behind the clip. */
INLINE void put_pixel(const laci_sparse_operands *o, int64_t place, int64_t stride, int64_t n,
                      const float *from) {
  for (int64_t c = 0; c < n; c++, place += stride, from += LANES) {
    for (int lane = 0; lane < LANES; lane += WIDTH) {
      vector v = LOAD(from + lane);
      if (o->residual) v = ADD(v, LOAD(o->residual + place + lane));
      STORE(o->y + place + lane, clip(o, v));
    }
  }
}

/* They are put together first, since memory likes neighbours to come together. */
static void finish_tile(const laci_winograd4 *w, const laci_sparse_operands *o,
                        const tile_part *part, const float *sums, const laci_winograd4_block *b) {
  const int64_t apart = laci_winograd4_apart(b, w->window.channels_out);
  const int64_t first = part->channel_first, n = part->channel_last - first;
  const int64_t stride = w->out.channel_stride;
  const bool clips = o->n_functions == 0 && !(o->residual && o->residual_last);
  float results[SIDE * SIDE * TOGETHER * LANES];
  for (int64_t at = 0; at < n * VECTORS; at++) {
    const int64_t c = at / VECTORS, lane = at % VECTORS * WIDTH;
    vector y[SIDE][READ];
    results_of(sums + (first + c) * b->stride + lane, apart, o->bias[first + c], y);
    for (int i = 0; i < SIDE * SIDE; i++) {
      STORE(results + (i * n + c) * LANES + lane, y[i / SIDE][i % SIDE]);
    }
  }
  laci_sparse_part of = {w->results, 0, 0, first, part->channel_last};
  for (int64_t i = 0; i < part->n_rows; i++) {
    float *row = results + i * SIDE * n * LANES;
    of.tile_first = part->result + i * w->window.out_w;
    of.tile_last = of.tile_first + part->n_columns;
    for (int64_t j = 0; j < part->n_columns && clips; j++) {
      const int64_t place = w->results[of.tile_first + j].out + first * stride;
      put_pixel(o, place, stride, n, row + j * n * LANES);
    }
    if (!clips) LACI_VARIANT(laci_sparse_finish)(o, stride, LACI_SPARSE_F32, &of, row);
  }
}

static void finish_images(const laci_winograd4 *w, const laci_winograd4_block *b, const float *sums,
                          const int64_t first_last[2], const laci_sparse_operands *o) {
  const laci_sparse_window *g = &w->window;
  for (int64_t unit = b->first; unit < b->last; unit++) {
    const tile t = tile_of(w, unit);
    const float *from = sums + (unit - b->first) * LANES;
    tile_part part = {.result = t.picture * w->n_each + t.y * g->out_w + t.x,
                      .n_rows = laci_least(SIDE, g->out_h - t.y),
                      .n_columns = laci_least(SIDE, g->out_w - t.x)};
    for (int64_t c = first_last[0]; c < first_last[1]; c = part.channel_last) {
      part.channel_first = c;
      part.channel_last = laci_least(c + TOGETHER, first_last[1]);
      finish_tile(w, o, &part, from, b);
    }
  }
}

void LACI_VARIANT(laci_winograd4_finish)(const laci_winograd4 *w, const laci_winograd4_block *b,
                                         const float *sums, const int64_t first_last[2],
                                         const laci_sparse_operands *o) {
  if (w->out.lanes == LACI_SPARSE_IMAGES) finish_images(w, b, sums, first_last, o);
  else finish_pixels(w, b, sums, first_last, o);
}
