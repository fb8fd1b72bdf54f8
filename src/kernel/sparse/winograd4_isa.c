/* SPDX-License-Identifier: Apache-2.0
 * The convolution of winograd4.h, compiled for every instruction set. Where lanes are pixels, it
 * computes one row of tiles at a time, or several rows of narrow images. The vertical transform
 * goes along rows of pixels. For the horizontal transform every fourth pixel is gathered, so that
 * lanes are neighbouring tiles. In HWC16N lanes are images, and no lane has to be moved. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/min.h"
#include "kernel/sparse/floats_isa.h"
#include "kernel/sparse/tile_isa.h"
#include "kernel/sparse/winograd4.h"
#include "kernel/variants.h"

#define INLINE static inline __attribute__((always_inline))

enum {
  LANES = LACI_SPARSE_LANES,
  SIDE = LACI_WINOGRAD4_SIDE,
  READ = LACI_WINOGRAD4_READ,
  POINTS = LACI_WINOGRAD4_POINTS,
  LINE = LACI_WINOGRAD4_LINE,
  VECTORS = LANES / WIDTH,
  AHEAD = 256,                    /* weights are prefetched this many floats before they are used,
                                     across pages */
  ROWS = WIDTH == 16 ? 13 : 6,    /* number of output channels in a group of weights, as
                                     rows_per_group of winograd4.c */
  AT_ONCE = WIDTH == 4 ? 4 : 2,   /* number of vectors of lanes whose sums are computed at once */
  CHUNK = SIDE * WIDTH,           /* number of result pixels, or of input pixels, in a row of a
                                     vector of tiles */
  MOST = LINE / SIDE + 2 * CHUNK, /* maximum number of floats in a row */
  TOGETHER = 8,                   /* number of channels of a tile that are transformed together in
                                     HWC16N */
};

/* ---- The transforms ---- */

/* Transforms six pixels d of a row or column to points, B' d, in place. */
INLINE void transform_six_pixels(vector d[READ]) {
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

/* Computes two values of the transform from seven pixels d: those of the interpolation points x and
 * -x. */
INLINE void transform_to_point_pair(const vector d[READ], float x, float product, float sum,
                                    vector to[2]) {
  const vector even = FMA(ALL(product), d[0], FMA(ALL(-sum), d[2], d[4]));
  const vector odd = FMA(ALL(product), d[1], FMA(ALL(-sum), d[3], d[5]));
  to[0] = FMA(ALL(x), even, odd);
  to[1] = FMA(ALL(-x), even, odd);
}

INLINE void transform_seven_pixels(vector d[READ]) {
  vector to[READ];
  transform_to_point_pair(d, LACI_WINOGRAD4_P, LACI_WINOGRAD4_Q2R2, LACI_WINOGRAD4_Q2_AND_R2, to);
  transform_to_point_pair(d, LACI_WINOGRAD4_Q, LACI_WINOGRAD4_P2R2, LACI_WINOGRAD4_P2_AND_R2,
                          to + 2);
  transform_to_point_pair(d, LACI_WINOGRAD4_R, LACI_WINOGRAD4_P2Q2, LACI_WINOGRAD4_P2_AND_Q2,
                          to + 4);
  to[6] = FMA(ALL(-LACI_WINOGRAD4_PRODUCT), d[0],
              FMA(ALL(LACI_WINOGRAD4_BF16), d[2], FMA(ALL(-LACI_WINOGRAD4_SQUARES), d[4], d[6])));
  for (int i = 0; i < READ; i++) d[i] = to[i];
}

/* Transforms `read` pixels to points, in place. read is 6 or 7, a constant where this is
 * inlined. */
INLINE void transform_to_points(vector d[READ], const int read) {
  if (read == READ) transform_seven_pixels(d);
  else transform_six_pixels(d);
}

/* Transforms six sums m of a row or column to results, A' m, which become the first four elements
 * of m. */
INLINE void transform_six_sums(vector m[READ]) {
  const vector sum_a = ADD(m[1], m[2]), less_a = SUB(m[1], m[2]);
  const vector sum_b = ADD(m[3], m[4]), less_b = SUB(m[3], m[4]);
  m[0] = ADD(m[0], ADD(sum_a, sum_b));
  m[1] = FMA(ALL(LACI_WINOGRAD4_A), less_a, MUL(ALL(LACI_WINOGRAD4_B), less_b));
  m[2] = FMA(ALL(LACI_WINOGRAD4_A2), sum_a, MUL(ALL(LACI_WINOGRAD4_B2), sum_b));
  m[3] = FMA(ALL(LACI_WINOGRAD4_A3), less_a, FMA(ALL(LACI_WINOGRAD4_B3), less_b, m[5]));
}

/* Transforms seven sums m of a row or column to results, A' m, which become the first four elements
 * of m. */
INLINE void transform_seven_sums(vector m[READ]) {
  const vector sum_p = ADD(m[0], m[1]), less_p = SUB(m[0], m[1]);
  const vector sum_q = ADD(m[2], m[3]), less_q = SUB(m[2], m[3]);
  const vector sum_r = ADD(m[4], m[5]), less_r = SUB(m[4], m[5]);
  m[0] = ADD(sum_p, ADD(sum_q, sum_r));
  m[1] = FMA(ALL(LACI_WINOGRAD4_P), less_p,
             FMA(ALL(LACI_WINOGRAD4_Q), less_q, MUL(ALL(LACI_WINOGRAD4_R), less_r)));
  m[2] = FMA(ALL(LACI_WINOGRAD4_P2), sum_p,
             FMA(ALL(LACI_WINOGRAD4_Q2), sum_q, MUL(ALL(LACI_WINOGRAD4_R2), sum_r)));
  m[3] = FMA(ALL(LACI_WINOGRAD4_P3), less_p,
             FMA(ALL(LACI_WINOGRAD4_Q3), less_q, FMA(ALL(LACI_WINOGRAD4_R3), less_r, m[6])));
}

INLINE void transform_to_results(vector m[READ], const int read) {
  if (read == READ) transform_seven_sums(m);
  else transform_six_sums(m);
}

/* ---- Gathering every fourth ---- */

/* SHIFT(a, b): the lanes of a from the second on, then the first lane of b. */
#if defined(__ARM_NEON)
#define SHIFT(a, b) vextq_f32(a, b, 1)
/* to[k] becomes every fourth float of `from`, beginning at the k-th. */
INLINE void deinterleave(const float *from, vector to[SIDE]) {
  const float32x4x4_t all = vld4q_f32(from);
  for (int k = 0; k < SIDE; k++) to[k] = all.val[k];
}
INLINE void interleave(const vector from[SIDE], float *to) {
  vst4q_f32(to, (float32x4x4_t){{from[0], from[1], from[2], from[3]}});
}
#elif defined(__AVX512F__)
#define SHIFT(a, b) \
  _mm512_castsi512_ps(_mm512_alignr_epi32(_mm512_castps_si512(b), _mm512_castps_si512(a), 1))
/* Transposes the 4 x 4 floats in each quarter of the four vectors. */
INLINE void transpose_quarters(vector v[SIDE]) {
  const vector low = _mm512_unpacklo_ps(v[0], v[1]), low2 = _mm512_unpacklo_ps(v[2], v[3]);
  const vector high = _mm512_unpackhi_ps(v[0], v[1]), high2 = _mm512_unpackhi_ps(v[2], v[3]);
  v[0] = _mm512_shuffle_ps(low, low2, 0x44);
  v[1] = _mm512_shuffle_ps(low, low2, 0xEE);
  v[2] = _mm512_shuffle_ps(high, high2, 0x44);
  v[3] = _mm512_shuffle_ps(high, high2, 0xEE);
}
/* v[i] becomes the i-th quarters of all four vectors. */
INLINE void gather_quarters(vector v[SIDE]) {
  const vector a = _mm512_shuffle_f32x4(v[0], v[1], 0x44);
  const vector b = _mm512_shuffle_f32x4(v[2], v[3], 0x44);
  const vector c = _mm512_shuffle_f32x4(v[0], v[1], 0xEE);
  const vector d = _mm512_shuffle_f32x4(v[2], v[3], 0xEE);
  v[0] = _mm512_shuffle_f32x4(a, b, 0x88);
  v[1] = _mm512_shuffle_f32x4(a, b, 0xDD);
  v[2] = _mm512_shuffle_f32x4(c, d, 0x88);
  v[3] = _mm512_shuffle_f32x4(c, d, 0xDD);
}
INLINE void deinterleave(const float *from, vector to[SIDE]) {
  for (int k = 0; k < SIDE; k++) to[k] = LOAD(from + (ptrdiff_t)k * WIDTH);
  gather_quarters(to);
  transpose_quarters(to);
}
INLINE void interleave(const vector from[SIDE], float *to) {
  vector v[SIDE] = {from[0], from[1], from[2], from[3]};
  transpose_quarters(v);
  gather_quarters(v);
  for (int k = 0; k < SIDE; k++) STORE(to + (ptrdiff_t)k * WIDTH, v[k]);
}
#else
INLINE vector shift_lanes(vector a, vector b) {
  const __m256i across = _mm256_castps_si256(_mm256_permute2f128_ps(a, b, 0x21));
  return _mm256_castsi256_ps(_mm256_alignr_epi8(across, _mm256_castps_si256(a), sizeof(float)));
}
#define SHIFT(a, b) shift_lanes(a, b)
INLINE void transpose_halves(vector v[SIDE]) {
  const vector low = _mm256_unpacklo_ps(v[0], v[1]), low2 = _mm256_unpacklo_ps(v[2], v[3]);
  const vector high = _mm256_unpackhi_ps(v[0], v[1]), high2 = _mm256_unpackhi_ps(v[2], v[3]);
  v[0] = _mm256_shuffle_ps(low, low2, 0x44);
  v[1] = _mm256_shuffle_ps(low, low2, 0xEE);
  v[2] = _mm256_shuffle_ps(high, high2, 0x44);
  v[3] = _mm256_shuffle_ps(high, high2, 0xEE);
}
INLINE void deinterleave(const float *from, vector to[SIDE]) {
  for (int k = 0; k < SIDE; k++) {
    const __m128 lower = _mm_loadu_ps(from + (ptrdiff_t)k * SIDE);
    const __m128 upper = _mm_loadu_ps(from + (ptrdiff_t)(SIDE + k) * SIDE);
    to[k] = _mm256_insertf128_ps(_mm256_castps128_ps256(lower), upper, 1);
  }
  transpose_halves(to);
}
INLINE void interleave(const vector from[SIDE], float *to) {
  vector v[SIDE] = {from[0], from[1], from[2], from[3]};
  transpose_halves(v);
  for (int k = 0; k < SIDE; k += 2) {
    STORE(to + (ptrdiff_t)k * SIDE, _mm256_permute2f128_ps(v[k], v[k + 1], 0x20));
    STORE(to + (ptrdiff_t)(SIDE + k) * SIDE, _mm256_permute2f128_ps(v[k], v[k + 1], 0x31));
  }
}
#endif

/* ---- Rows of tiles ---- */

/* Returns the number of rows of tiles in one vector. It is more than 1 for narrow images, if their
 * pixels and results also fill whole vectors. Otherwise each row has vectors of its own. */
INLINE int64_t tile_rows_per_vector(const laci_winograd4 *w) {
  const bool fills = WIDTH % w->tiles_w == 0 && SIDE * w->tiles_w % WIDTH == 0;
  return w->tiles_w < WIDTH && fills ? WIDTH / w->tiles_w : 1;
}

/* ---- Transforming pixels where lanes are tiles ---- */

static const float zeros[MOST];

/* How the rows of tiles of an image fill vectors: a row takes several vectors, or a vector holds
 * several rows. */
typedef struct filling {
  int64_t n_rows;    /* number of rows of tiles in a vector */
  int64_t n_vectors; /* number of vectors of pixels for a row; SIDE if a vector holds several
                        rows */
  int64_t n_chunks;  /* number of vectors of tiles. The last one may have no tile, but only pixels
                        that the vector before it reads */
  int64_t n_pixels;  /* number of pixels of a row, counted from the border on; zeros follow */
  int64_t n_missing; /* number of border pixels that the layout has no memory for, before a row. The
                        end of the row above is stored there */
  vector same_row;   /* a mask: all bits are set in lanes whose next lane is a tile of the same
                        row */
} filling;

/* Returns how the rows of a source (an input channel that is read without a stride) fill vectors.
 * If the window strides, the source (`part`) has every second pixel, from the first or the second
 * pixel of the border on. */
static filling plan_filling(const laci_winograd4 *w, int64_t part) {
  const laci_sparse_window *g = &w->window;
  const int64_t all = g->w + g->pad_left - part % w->stride;
  const int64_t n_pixels = (all + w->stride - 1) / w->stride;
  const int64_t after = n_pixels > SIDE * w->tiles_w ? 1 : 0;
  const int64_t missing = w->stride == 1 ? g->pad_left - w->in.left : 0;
  filling f = {.n_rows = 1,
               .n_chunks = (w->tiles_w + after + WIDTH - 1) / WIDTH,
               .n_pixels = n_pixels,
               .n_missing = missing > 0 ? missing : 0};
  if (!after && w->stride == 1) f.n_rows = tile_rows_per_vector(w);
  f.n_vectors = SIDE / f.n_rows;
  uint32_t bits[WIDTH];
  for (int lane = 0; lane < WIDTH; lane++) {
    const bool last = f.n_rows > 1 && lane % w->tiles_w == w->tiles_w - 1;
    bits[lane] = last ? 0 : UINT32_MAX;
  }
  memcpy(&f.same_row, bits, sizeof f.same_row);
  return f;
}

/* A source of a channel: all its pixels; if the window strides, those of even or odd rows and
 * columns. */
typedef struct source {
  const float *channel;
  const filling *filling;
  int64_t part;
  int64_t apart; /* number of floats from one point of the transform to the next */
} source;

/* Copies every second of 2 n floats to `to`. It reads nothing after the last one. */
static void copy_every_second(const float *from, int64_t n, float *to) {
  int64_t at = 0;
  for (; at + WIDTH < n; at += WIDTH) {
    STORE(to + at, EVEN(LOAD(from + 2 * at), LOAD(from + 2 * at + WIDTH)));
  }
  if (at == 0) {
    for (; at < n; at++) to[at] = from[2 * at];
    return;
  }
  const float *last = from + 2 * (n - WIDTH) - 1;
  STORE(to + n - WIDTH, ODD(LOAD(last), LOAD(last + WIDTH)));
}

/* Copies the pixels that a source has in one row of its channel to `to`, with zeros for the
 * border. */
static void copy_strided_row(const laci_winograd4 *w, const source *s, const float *from,
                             float *to) {
  const int64_t stride = w->stride, first = s->part % stride - w->window.pad_left;
  const int64_t left = first < 0 ? (-first + stride - 1) / stride : 0;
  const int64_t n = laci_min(left, s->filling->n_pixels);
  for (int64_t at = 0; at < n; at++) to[at] = 0;
  copy_every_second(from + first + left * stride, s->filling->n_pixels - n, to + n);
}

/* Sets row[]: the addresses of the rows of pixels that a row of tiles reads. They are in the image,
 * or in `zeros` above and below it. If the window strides, they are copied to one_lane first. */
INLINE void find_source_rows(const laci_winograd4 *w, const source *s, int64_t unit, const int read,
                             float (*one_lane)[MOST], const float *row[READ]) {
  const laci_sparse_window *g = &w->window;
  const float *channel = s->channel + unit / w->tiles_h * w->in.n_floats;
  const int64_t first = unit % w->tiles_h * SIDE * w->stride + s->part / w->stride - g->pad_top;
  for (int i = 0; i < read; i++) {
    const int64_t y = first + i * w->stride;
    const bool inside = unit < w->n_units && y >= 0 && y < g->h;
    row[i] = zeros;
    if (inside && w->stride == 1) {
      row[i] = channel + laci_sparse_offset(&w->in, 0, y, -g->pad_left);
    } else if (inside) {
      copy_strided_row(w, s, channel + laci_sparse_offset(&w->in, 0, y, 0), one_lane[i]);
      row[i] = one_lane[i];
    }
  }
}

/* Returns a mask with all bits set in lanes [first, last). */
INLINE vector lane_range_mask(int64_t first, int64_t last) {
  uint32_t bits[WIDTH];
  for (int lane = 0; lane < WIDTH; lane++) {
    bits[lane] = lane >= first && lane < last ? UINT32_MAX : 0;
  }
  vector v;
  memcpy(&v, bits, sizeof v);
  return v;
}

/* Transforms vectors of pixels vertically, beginning at column x. row: the rows of pixels, with
 * zeros around them. */
INLINE void transform_vertically(const filling *f, const float *const row[READ], int64_t x,
                                 const int read, float to[READ * CHUNK]) {
  for (int64_t k = 0; k < f->n_vectors; k++, x += WIDTH, to += WIDTH) {
    const int64_t left = f->n_pixels - x, missing = f->n_missing - x;
    vector d[READ];
    for (int i = 0; i < read; i++) d[i] = left > 0 ? LOAD(row[i] + x) : ALL(0);
    if ((left > 0 && left < WIDTH) || missing > 0) {
      const vector mask = lane_range_mask(missing, left);
      for (int i = 0; i < read; i++) d[i] = BOTH(d[i], mask);
    }
    transform_to_points(d, read);
    for (int i = 0; i < read; i++) STORE(to + (ptrdiff_t)i * CHUNK, d[i]);
  }
}

/* Transforms a vector of tiles horizontally. after: at first the pixels of the tile that follows
 * this vector; at the end those of the first tile of this vector. */
INLINE void transform_horizontally(const filling *f, const float *pixels, const int read,
                                   vector after[READ - SIDE], vector d[READ]) {
  deinterleave(pixels, d);
  for (int k = 0; k < read - SIDE; k++) {
    d[SIDE + k] = BOTH(SHIFT(d[k], after[k]), f->same_row);
    after[k] = d[k];
  }
  transform_to_points(d, read);
}

/* Transforms the pixels of a source to points, for f->n_rows rows of tiles, beginning at row
 * `unit`. */
INLINE void transform_rows_of_tiles(const laci_winograd4 *w, const source *s, int64_t unit,
                                    const int read, float *to) {
  const filling *f = s->filling;
  const float *row[READ];
  float one_lane[READ][MOST];
  _Alignas(64) float pixels[READ * CHUNK];
  vector after[READ][READ - SIDE];
  for (int i = 0; i < read; i++) {
    for (int k = 0; k < read - SIDE; k++) after[i][k] = ALL(0);
  }
  if (f->n_rows == 1) find_source_rows(w, s, unit, read, one_lane, row);
  for (int64_t chunk = f->n_chunks - 1; chunk >= 0; chunk--) {
    for (int64_t r = 0; r < f->n_rows; r++) {
      if (f->n_rows > 1) find_source_rows(w, s, unit + r, read, one_lane, row);
      transform_vertically(f, row, chunk * CHUNK, read, pixels + r * f->n_vectors * WIDTH);
    }
    for (int i = 0; i < read; i++) {
      vector d[READ];
      transform_horizontally(f, pixels + (ptrdiff_t)i * CHUNK, read, after[i], d);
      if (chunk * WIDTH >= w->tiles_w) continue;
      for (int k = 0; k < read; k++) STORE(to + (i * read + k) * s->apart + chunk * WIDTH, d[k]);
    }
  }
}

INLINE void transform_pixels(const laci_winograd4 *w, const laci_winograd4_block *b, const float *x,
                             const int64_t first_last[2], const int read, float *points) {
  const int64_t apart = laci_winograd4_point_stride(b, w->sources), parts = w->stride * w->stride;
  filling fillings[LACI_WINOGRAD4_PARTS];
  for (int64_t part = 0; part < parts; part++) fillings[part] = plan_filling(w, part);
  for (int64_t at = first_last[0]; at < first_last[1]; at++) {
    const filling *f = &fillings[at % parts];
    const source s = {x + at / parts * w->in.channel_stride, f, at % parts, apart};
    float *to = points + at * b->stride;
    for (int64_t unit = b->first; unit < b->last; unit += f->n_rows) {
      transform_rows_of_tiles(w, &s, unit, read, to + (unit - b->first) * w->unit);
    }
    for (int p = 0; p < read * read && b->n_lanes % WIDTH != 0; p++) {
      STORE(to + p * apart + b->n_lanes, ALL(0)); /* padding of the last vector */
    }
  }
}

/* ---- Transforming pixels in HWC16N ---- */

/* Addresses of the pixels of a tile in HWC16N. Pixels outside of the image point to zeros. */
typedef struct pixels {
  const float *at[POINTS];
  int64_t next[POINTS]; /* number of floats from one channel to the next */
} pixels;

/* The position of a tile among the tiles of all image blocks. */
typedef struct tile {
  int64_t image_block, y, x; /* y, x: position of its first result */
} tile;

static tile find_tile_of_index(const laci_winograd4 *w, int64_t unit) {
  const int64_t each = w->tiles_h * w->tiles_w;
  return (tile){unit / each, unit % each / w->tiles_w * SIDE, unit % w->tiles_w * SIDE};
}

/* Returns the addresses of a tile's pixels for one source of the first channel. part: which of a
 * channel's sources. */
static pixels find_tile_pixels(const laci_winograd4 *w, const float *x, int64_t unit,
                               int64_t part) {
  const laci_sparse_window *g = &w->window;
  const int64_t stride = w->stride, read = laci_winograd4_tile_side(w->taps);
  const tile t = find_tile_of_index(w, unit);
  const int64_t y = t.y * stride + part / stride - g->pad_top;
  const int64_t left = t.x * stride + part % stride - g->pad_left;
  const float *image_block =
      x + t.image_block * w->in.n_floats + laci_sparse_offset(&w->in, 0, 0, 0);
  pixels p;
  for (int64_t i = 0; i < read; i++) {
    for (int64_t j = 0; j < read; j++) {
      const int64_t row = y + i * stride, column = left + j * stride, at = i * read + j;
      const bool inside = row >= 0 && row < g->h && column >= 0 && column < g->w;
      p.at[at] =
          inside ? image_block + row * w->in.row_stride + column * w->in.pixel_stride : zeros;
      p.next[at] = inside ? w->in.channel_stride : 0;
    }
  }
  return p;
}

/* Transforms n channels of a tile vertically, from channel c on, to [channel][row][column][lane].
 * Pixels are far apart in memory, and often map to the same cache set, but the channels of a pixel
 * are contiguous. So it reads one column of pixels for all n channels before the next column. */
INLINE void transform_columns(const pixels *p, int64_t c, int64_t n, const int read, float *to) {
  for (int j = 0; j < read; j++) {
    const float *from[READ];
    for (int i = 0; i < read; i++) from[i] = p->at[i * read + j] + c * p->next[i * read + j];
    const int ahead = j + 1 < read ? 1 : 1 - read;
    const float *later[READ];
    for (int i = 0; i < read; i++) {
      const int next = i * read + j + ahead;
      later[i] = p->at[next] + (c + (ahead < 0 ? n : 0)) * p->next[next];
    }
    for (int64_t at = 0; at < n; at++) {
      for (int i = 0; i < read; i++) {
        __builtin_prefetch(later[i]);
        later[i] += LANES;
      }
      for (int v = 0; v < VECTORS; v++) {
        vector d[READ];
        for (int i = 0; i < read; i++) d[i] = LOAD(from[i] + (ptrdiff_t)v * WIDTH);
        transform_to_points(d, read);
        float *column = to + (at * read * read + j) * LANES + (ptrdiff_t)v * WIDTH;
        for (int i = 0; i < read; i++) STORE(column + (ptrdiff_t)i * read * LANES, d[i]);
      }
      for (int i = 0; i < read; i++) from[i] += p->next[i * read + j];
    }
  }
}

INLINE void transform_images(const laci_winograd4 *w, const laci_winograd4_block *b, const float *x,
                             const int64_t first_last[2], const int read, float *points) {
  const int64_t apart = laci_winograd4_point_stride(b, w->sources), parts = w->stride * w->stride;
  const int64_t together = parts == 1 ? TOGETHER : 1; /* the sources of a strided window are not
                                                         neighbours in memory */
  float columns[TOGETHER * POINTS * LANES];
  for (int64_t unit = b->first; unit < b->last; unit++) {
    pixels p[LACI_WINOGRAD4_PARTS];
    for (int64_t part = 0; part < parts; part++) p[part] = find_tile_pixels(w, x, unit, part);
    float *lanes = points + (unit - b->first) * LANES;
    for (int64_t s = first_last[0]; s < first_last[1]; s += together) {
      const int64_t n = laci_min(together, first_last[1] - s);
      transform_columns(&p[s % parts], s / parts, n, read, columns);
      for (int64_t at = 0; at < n * read * VECTORS; at++) {
        const int64_t channel = at / VECTORS / read, i = at / VECTORS % read;
        const int64_t lane = at % VECTORS * WIDTH;
        const float *row = columns + (channel * read + i) * read * LANES + lane;
        float *to = lanes + (s + channel) * b->stride + i * read * apart + lane;
        vector d[READ];
        for (int j = 0; j < read; j++) d[j] = LOAD(row + (ptrdiff_t)j * LANES);
        transform_to_points(d, read);
        for (int j = 0; j < read; j++) STORE(to + j * apart, d[j]);
      }
    }
  }
}

/* ---- Transforming the input of a block ---- */

INLINE void transform_input(const laci_winograd4 *w, const laci_winograd4_block *b, const float *x,
                            const int64_t first_last[2], const int read, float *points) {
  if (w->in.format == LACI_FORMAT_HWC16N) transform_images(w, b, x, first_last, read, points);
  else transform_pixels(w, b, x, first_last, read, points);
}

void LACI_VARIANT(laci_winograd4_transform)(const laci_winograd4 *w, const laci_winograd4_block *b,
                                            const float *x, const int64_t first_last[2],
                                            float *points) {
  if (w->points == POINTS) transform_input(w, b, x, first_last, READ, points);
  else transform_input(w, b, x, first_last, READ - 1, points);
}

/* ---- Sums ---- */

/* The operands of a product of one point: weights of at most two groups of output channels. */
typedef struct groups {
  const float *weight; /* weights of the first group; those of the second group follow */
  int64_t channels, stride;
  int64_t n_rows; /* number of output channels that exist */
} groups;

/* Computes the sums of n_groups groups of output channels, for n vectors of lanes. Both numbers are
 * constants where this is inlined. */
INLINE void sum_channel_groups(const groups *g, const float *x, const int n_groups, const int n,
                               float *to) {
  const int64_t channels = g->channels, stride = g->stride, after = channels * ROWS;
  const float *weight = g->weight;
  vector sum[2 * ROWS][AT_ONCE];
#pragma GCC unroll 26
  for (int r = 0; r < n_groups * ROWS; r++) {
#pragma GCC unroll 4
    for (int v = 0; v < n; v++) sum[r][v] = ALL(0);
  }
  for (int64_t c = 0; c < channels; c++, x += stride, weight += ROWS) {
    for (int k = 0; k < n_groups; k++) { __builtin_prefetch(weight + k * after + AHEAD); }
    vector lanes[AT_ONCE];
#pragma GCC unroll 4
    for (int v = 0; v < n; v++) lanes[v] = LOAD(x + (ptrdiff_t)v * WIDTH);
#pragma GCC unroll 26
    for (int r = 0; r < n_groups * ROWS; r++) {
      const vector each = ALL(weight[r / ROWS * after + r % ROWS]);
#pragma GCC unroll 4
      for (int v = 0; v < n; v++) sum[r][v] = FMA(each, lanes[v], sum[r][v]);
    }
  }
#pragma GCC unroll 26
  for (int r = 0; r < n_groups * ROWS; r++) {
    if (r >= g->n_rows) break;
#pragma GCC unroll 4
    for (int v = 0; v < n; v++) STORE(to + r * stride + (ptrdiff_t)v * WIDTH, sum[r][v]);
  }
}

#if defined(__AVX512F__)
/* Computes the sums of n_groups groups for half a vector of lanes. Some processors execute a vector
 * in two halves, and need half the time for this. */
INLINE void sum_channel_groups_of_half_vector(const groups *g, const float *x, const int n_groups,
                                              float *to) {
  const int64_t stride = g->stride, after = g->channels * ROWS;
  const float *weight = g->weight;
  __m256 sum[2 * ROWS];
#pragma GCC unroll 26
  for (int r = 0; r < n_groups * ROWS; r++) sum[r] = _mm256_setzero_ps();
  for (int64_t c = 0; c < g->channels; c++, x += stride, weight += ROWS) {
    const __m256 lanes = _mm256_loadu_ps(x);
#pragma GCC unroll 26
    for (int r = 0; r < n_groups * ROWS; r++) {
      const __m256 each = _mm256_set1_ps(weight[r / ROWS * after + r % ROWS]);
      sum[r] = _mm256_mask3_fmadd_ps(each, lanes, sum[r], 0xFF);
    }
  }
#pragma GCC unroll 26
  for (int r = 0; r < n_groups * ROWS; r++) {
    if (r < g->n_rows) _mm256_storeu_ps(to + r * stride, sum[r]);
  }
}
#endif

/* Computes the lanes that remain after pairs of vectors: one vector or half of one. It does so for
 * twice as many groups at once. */
INLINE void sum_remaining_lanes(const groups *g, const float *x, const int n_groups,
                                int64_t n_lanes, float *to) {
#if defined(__AVX512F__)
  if (n_lanes <= WIDTH / 2) {
    sum_channel_groups_of_half_vector(g, x, n_groups, to);
    return;
  }
#endif
  (void)n_lanes;
  sum_channel_groups(g, x, n_groups, 1, to);
}

/* Multiplies the transformed input at one point by the weights, and sums over sources, for all
 * output channels. */
static void multiply_weights_of_point(const groups *point, int64_t n_lanes, int64_t n_groups,
                                      const float *x, float *y) {
  const int64_t whole = n_lanes / (AT_ONCE * WIDTH) * AT_ONCE * WIDTH;
  const int64_t each = point->channels * ROWS;
  groups g = *point;
  for (int64_t lane = 0; lane < whole; lane += AT_ONCE * WIDTH) {
    for (int64_t at = 0; at < n_groups; at++) {
      g.weight = point->weight + at * each;
      g.n_rows = point->n_rows - at * ROWS;
      sum_channel_groups(&g, x + lane, 1, AT_ONCE, y + at * ROWS * g.stride + lane);
    }
  }
  for (int64_t lane = whole; lane < n_lanes; lane += WIDTH) {
    for (int64_t at = 0; at < n_groups; at += 2) {
      g.weight = point->weight + at * each;
      g.n_rows = point->n_rows - at * ROWS;
      float *to = y + at * ROWS * g.stride + lane;
      if (at + 1 < n_groups) sum_remaining_lanes(&g, x + lane, 2, n_lanes - lane, to);
      else sum_remaining_lanes(&g, x + lane, 1, n_lanes - lane, to);
    }
  }
}

void LACI_VARIANT(laci_winograd4_multiply)(const laci_winograd4 *w, const laci_winograd4_block *b,
                                           const float *weights, const float *points,
                                           const int64_t first_last[2], float *sums) {
  const int64_t in = w->sources, out = w->window.channels_out;
  const int64_t n_groups = laci_winograd4_n_groups(w);
  for (int64_t p = first_last[0]; p < first_last[1]; p++) {
    const groups point = {weights + p * n_groups * in * ROWS, in, b->stride, out};
    multiply_weights_of_point(&point, b->n_lanes, n_groups,
                              points + p * laci_winograd4_point_stride(b, in),
                              sums + p * laci_winograd4_point_stride(b, out));
  }
}

/* ---- Results ---- */

/* Transforms the sums of all points into sixteen vectors of results, and adds the bias. */
INLINE void transform_sums(const float *sums, int64_t apart, float bias, const int read,
                           vector to[SIDE][READ]) {
  for (int j = 0; j < read; j++) {
    vector m[READ];
    for (int i = 0; i < read; i++) m[i] = LOAD(sums + (i * read + j) * apart);
    transform_to_results(m, read);
    for (int i = 0; i < SIDE; i++) to[i][j] = m[i];
  }
  for (int i = 0; i < SIDE; i++) {
    transform_to_results(to[i], read);
    for (int j = 0; j < SIDE; j++) to[i][j] = ADD(to[i][j], ALL(bias));
  }
}

/* A band: consecutive rows of tiles of an image, whose results are computed at once. */
typedef struct band {
  int64_t n;                   /* number of rows of tiles */
  int64_t first_row, last_row; /* range of the rows of results */
  int64_t begin, end;          /* range of positions in the long row of results */
  int64_t n_tiles;             /* number of tiles of 16 results (product.h) */
  int64_t apart;               /* number of floats from one point's sums to the next point's */
  float bias;                  /* bias of the channel */
  laci_sparse_tile tiles[LINE / LANES];
} band;

/* Restricts a tile of 16 results to lanes of this band. If the previous or the next band has some
 * of its lanes, it is stored lane by lane. */
static void restrict_tile_to_band(laci_sparse_tile *t, uint64_t lanes) {
  if ((lanes & LACI_SPARSE_ALL_LANES) != LACI_SPARSE_ALL_LANES) t->lanes &= lanes;
}

static void describe_band(const laci_winograd4 *w, int64_t unit, band *to) {
  const laci_sparse_window *g = &w->window;
  const int64_t stride = w->out.row_stride;
  to->first_row = unit % w->tiles_h * SIDE;
  to->last_row = laci_min(to->first_row + to->n * SIDE, g->out_h);
  to->begin = to->first_row * stride;
  to->end = to->last_row == g->out_h ? (g->out_h - 1) * stride + g->out_w : to->last_row * stride;
  const int64_t first = to->begin / LANES, last = (to->end + LANES - 1) / LANES;
  to->n_tiles = last - first;
  memcpy(to->tiles, w->results + unit / w->tiles_h * w->results_per_block + first,
         (size_t)to->n_tiles * sizeof *to->tiles);
  const uint64_t after_begin = (uint64_t)LACI_SPARSE_ALL_LANES << to->begin % LANES;
  restrict_tile_to_band(&to->tiles[0], after_begin & LACI_SPARSE_ALL_LANES);
  if (to->last_row < g->out_h && to->end % LANES) {
    restrict_tile_to_band(&to->tiles[to->n_tiles - 1], ((uint64_t)1 << to->end % LANES) - 1);
  }
}

INLINE vector clip(const laci_sparse_operands *o, vector v) {
  return SMALLER(ALL(o->high), LARGER(ALL(o->low), v));
}

/* Stores the rows of results of a vector of tiles, n at most. The vector holds one row of tiles or
 * several (tile_rows_per_vector). Surplus results of the last tile of a row are overwritten by the
 * next row. */
INLINE void store_vectors(const laci_winograd4 *w, vector results[SIDE][READ], int64_t n,
                          float *to) {
  const int64_t rows = tile_rows_per_vector(w), stride = w->out.row_stride;
  float together[SIDE][CHUNK];
  n = laci_min(n, rows * SIDE);
  for (int64_t i = 0; rows == 1 && i < n; i++) interleave(results[i], to + i * stride);
  if (rows == 1) return;
  for (int i = 0; i < SIDE; i++) interleave(results[i], together[i]);
  for (int64_t row = 0; row < n; row++) {
    const float *from = together[row % SIDE] + row / SIDE * SIDE * w->tiles_w;
    for (int64_t x = 0; x < SIDE * w->tiles_w; x += WIDTH) {
      STORE(to + row * stride + x, LOAD(from + x));
    }
  }
}

/* Computes a band's results of one channel from its sums. A row's vectors are stored from right to
 * left, so that surplus results are overwritten. If nothing is added to the results, they are
 * clipped here. */
INLINE void transform_channel_to_results(const laci_winograd4 *w, const laci_sparse_operands *o,
                                         const band *of, const float *sums, const int read,
                                         float *line) {
  const int64_t rows = tile_rows_per_vector(w),
                last = rows > 1 ? 0 : (w->tiles_w - 1) / WIDTH * WIDTH;
  for (int64_t y = of->first_row; y < of->last_row; y += rows * SIDE) {
    float *to = line + (y - of->first_row) * w->out.row_stride;
    for (int64_t t = last; t >= 0; t -= WIDTH) {
      vector results[SIDE][READ];
      transform_sums(sums + t, of->apart, of->bias, read, results);
      for (int i = 0; i < SIDE && !o->residual; i++) {
        for (int j = 0; j < SIDE; j++) results[i][j] = clip(o, results[i][j]);
      }
      store_vectors(w, results, of->last_row - y, to + SIDE * t);
    }
    sums += rows * w->unit;
  }
}

/* n lines of results, one for each channel, beginning at channel `first`. each: number of floats
 * from one line to the next. */
typedef struct lines {
  const float *at;
  int64_t each, first, n;
} lines;

/* Stores the lines in y; only for products where no function follows the clip. In PC16P the
 * channels of a tile are neighbours in memory. */
static void store_result_lines(const laci_sparse_operands *o, int64_t stride, const band *of,
                               const lines *l) {
  float added[LANES];
  for (int64_t t = 0; t < of->n_tiles; t++) {
    const laci_sparse_tile *to = &of->tiles[t];
    int64_t place = to->out + l->first * stride;
    for (int64_t c = 0; c < l->n; c++, place += stride) {
      const float *from = l->at + c * l->each + t * LANES;
      if (o->residual) {
        laci_sparse_load_tile(o->residual + place, to->lanes, added);
        for (int lane = 0; lane < LANES; lane += WIDTH) {
          STORE(added + lane, clip(o, ADD(LOAD(from + lane), LOAD(added + lane))));
        }
        from = added;
      }
      laci_sparse_store_tile(o->y + place, to->lanes, from);
    }
  }
}

/* Applies the functions to the lines and stores them in y (finish_isa.c); only for products where
 * functions follow the clip. */
static void apply_functions_to_lines(const laci_sparse_operands *o, int64_t stride, const band *of,
                                     const lines *l, float *line) {
  laci_sparse_operands left = *o;
  if (!o->residual) { /* without a residual the results are clipped already */
    left.low = -INFINITY;
    left.high = INFINITY;
  }
  for (int64_t c = 0; c < l->n; c++) {
    const laci_sparse_part part = {of->tiles, 0, of->n_tiles, l->first + c, l->first + c + 1};
    LACI_VARIANT(laci_sparse_finish)(&left, stride, LACI_SPARSE_F32, &part, line + c * l->each);
  }
}

INLINE void transform_pixels_to_results(const laci_winograd4 *w, const laci_winograd4_block *b,
                                        const float *sums, const int64_t first_last[2],
                                        const laci_sparse_operands *o, const int read) {
  enum {
    OVER = 2 * CHUNK + LANES
  }; /* up to this many floats before and after a line may be overwritten */
  const int64_t row = SIDE * w->out.row_stride, most = (LINE / TOGETHER - OVER) / row;
  const int64_t stride = w->out.channel_stride;
  _Alignas(64) float line[LINE];
  band of = {.apart = laci_winograd4_point_stride(b, w->window.channels_out)};
  for (int64_t unit = b->first; unit < b->last; unit += of.n) {
    of.n = laci_min(most > 1 ? most : 1, b->last - unit);
    of.n = laci_min(of.n, w->tiles_h - unit % w->tiles_h);
    describe_band(w, unit, &of);
    lines l = {line, (of.n * row + OVER) / LANES * LANES, first_last[0], 0};
    const int64_t together = laci_min(TOGETHER, LINE / l.each);
    for (; l.first < first_last[1]; l.first += l.n) {
      l.n = laci_min(together, first_last[1] - l.first);
      for (int64_t c = 0; c < l.n; c++) {
        const float *from = sums + (l.first + c) * b->stride + (unit - b->first) * w->unit;
        float *to = line + c * l.each + of.begin % LANES;
        of.bias = o->bias[l.first + c];
        transform_channel_to_results(w, o, &of, from, read, to);
      }
      if (laci_sparse_is_only_clipped(o)) store_result_lines(o, stride, &of, &l);
      else apply_functions_to_lines(o, stride, &of, &l, line);
    }
  }
}

/* A tile of 16 images. channel_first, channel_last: some of its channels. result: index of its
 * first result. n_rows, n_columns: how many rows and columns of results exist. */
typedef struct tile_part {
  int64_t channel_first, channel_last, result, n_rows, n_columns;
} tile_part;

/* Stores one pixel's results of n channels; only for products where no function follows the
 * clip. */
INLINE void store_pixel(const laci_sparse_operands *o, int64_t place, int64_t stride, int64_t n,
                        const float *from) {
  for (int64_t c = 0; c < n; c++, place += stride, from += LANES) {
    for (int lane = 0; lane < LANES; lane += WIDTH) {
      vector v = LOAD(from + lane);
      if (o->residual) v = ADD(v, LOAD(o->residual + place + lane));
      STORE(o->y + place + lane, clip(o, v));
    }
  }
}

/* Computes the results of a tile in HWC16N. They are first collected in a buffer, so that
 * neighbours in memory are written one after the other. */
INLINE void transform_tile_to_results(const laci_winograd4 *w, const laci_sparse_operands *o,
                                      const tile_part *part, const float *sums,
                                      const laci_winograd4_block *b, const int read) {
  const int64_t apart = laci_winograd4_point_stride(b, w->window.channels_out);
  const int64_t first = part->channel_first, n = part->channel_last - first;
  const int64_t stride = w->out.channel_stride;
  const bool clips = laci_sparse_is_only_clipped(o);
  float results[SIDE * SIDE * TOGETHER * LANES];
  for (int64_t at = 0; at < n * VECTORS; at++) {
    const int64_t c = at / VECTORS, lane = at % VECTORS * WIDTH;
    vector y[SIDE][READ];
    transform_sums(sums + (first + c) * b->stride + lane, apart, o->bias[first + c], read, y);
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
      store_pixel(o, place, stride, n, row + j * n * LANES);
    }
    if (!clips) LACI_VARIANT(laci_sparse_finish)(o, stride, LACI_SPARSE_F32, &of, row);
  }
}

/* 6 and 7 points have a function each, since gcc optimizes separate functions better. */
static __attribute__((noinline)) void finish_tile_of_six(const laci_winograd4 *w,
                                                         const laci_sparse_operands *o,
                                                         const tile_part *part, const float *sums,
                                                         const laci_winograd4_block *b) {
  transform_tile_to_results(w, o, part, sums, b, READ - 1);
}

static __attribute__((noinline)) void finish_tile_of_seven(const laci_winograd4 *w,
                                                           const laci_sparse_operands *o,
                                                           const tile_part *part, const float *sums,
                                                           const laci_winograd4_block *b) {
  transform_tile_to_results(w, o, part, sums, b, READ);
}

INLINE void transform_images_to_results(const laci_winograd4 *w, const laci_winograd4_block *b,
                                        const float *sums, const int64_t first_last[2],
                                        const laci_sparse_operands *o, const int read) {
  const laci_sparse_window *g = &w->window;
  for (int64_t unit = b->first; unit < b->last; unit++) {
    const tile t = find_tile_of_index(w, unit);
    const float *from = sums + (unit - b->first) * LANES;
    tile_part part = {.result = t.image_block * w->results_per_block + t.y * g->out_w + t.x,
                      .n_rows = laci_min(SIDE, g->out_h - t.y),
                      .n_columns = laci_min(SIDE, g->out_w - t.x)};
    for (int64_t c = first_last[0]; c < first_last[1]; c = part.channel_last) {
      part.channel_first = c;
      part.channel_last = laci_min(c + TOGETHER, first_last[1]);
      if (read == READ) finish_tile_of_seven(w, o, &part, from, b);
      else finish_tile_of_six(w, o, &part, from, b);
    }
  }
}

INLINE void transform_block_to_results(const laci_winograd4 *w, const laci_winograd4_block *b,
                                       const float *sums, const int64_t first_last[2],
                                       const laci_sparse_operands *o, const int read) {
  if (w->out.format == LACI_FORMAT_HWC16N)
    transform_images_to_results(w, b, sums, first_last, o, read);
  else transform_pixels_to_results(w, b, sums, first_last, o, read);
}

void LACI_VARIANT(laci_winograd4_finish)(const laci_winograd4 *w, const laci_winograd4_block *b,
                                         const float *sums, const int64_t first_last[2],
                                         const laci_sparse_operands *o) {
  if (w->points == POINTS) transform_block_to_results(w, b, sums, first_last, o, READ);
  else transform_block_to_results(w, b, sums, first_last, o, READ - 1);
}
