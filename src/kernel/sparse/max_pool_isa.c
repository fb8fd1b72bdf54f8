/* SPDX-License-Identifier: Apache-2.0
 * Max pooling of max_pool.h, compiled for every instruction set. For a part of a row, it takes the
 * maximum over the rows of the window first, then over its columns. A place is four bytes: a float,
 * or four u8 values of neighbouring channels. Padding holds the least value. */
#include "kernel/sparse/max_pool.h"

#include <math.h>
#include <string.h>

#include "kernel/sparse/floats_isa.h"
#include "kernel/sparse/max_pool_in.h"
#include "kernel/variants.h"

enum {
  LANES = LACI_SPARSE_LANES,
  SOME = LACI_MAX_POOL_RESULTS_AT_ONCE,
  LONGEST = (SOME - 1) * LACI_MAX_POOL_STRIDE + LACI_MAX_POOL_KERNEL,
};

static int64_t smaller_of(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger_of(int64_t a, int64_t b) { return a > b ? a : b; }

static void keep_larger_bytes(uint8_t *restrict to, const uint8_t *restrict from, int64_t n) {
  for (int64_t at = 0; at < n; at++) to[at] = from[at] > to[at] ? from[at] : to[at];
}

static void keep_larger_floats(float *restrict to, const float *restrict from, int64_t n) {
  for (int64_t at = 0; at < n; at++) to[at] = from[at] > to[at] ? from[at] : to[at];
}

/* to[i] becomes the larger of to[i] and from[i], for n places (floats, or four bytes each). */
static void keep_larger_values(const laci_max_pool *p, float *to, const float *from, int64_t n) {
  if (p->window.values == LACI_SPARSE_F32) keep_larger_floats(to, from, n);
  else keep_larger_bytes((uint8_t *)to, (const uint8_t *)from, n * (int64_t)sizeof *to);
}

static void fill_with_lowest_value(const laci_max_pool *p, float *to, int64_t n) {
  const float least_of = p->window.values == LACI_SPARSE_F32 ? -INFINITY : 0;
  for (int64_t at = 0; at < n; at++) to[at] = least_of;
}

/* ---- Lanes are pixels ---- */

/* Returns the number of places that are contiguous in memory, beginning at pixel (y, x). */
static int64_t count_contiguous_places(const laci_sparse_layout *l, int64_t y, int64_t x) {
  const int64_t place = (y + l->top) * l->row_stride + l->left + x;
  return l->format == LACI_FORMAT_PC16P ? LANES - place % LANES : INT64_MAX;
}

/* A part of a row of results, and the pixels that its windows read. */
typedef struct part {
  const laci_max_pool *p;
  int64_t channel, y;  /* channel and row of the results */
  int64_t first, last; /* the columns [first, last) of the results */
  int64_t from, n;     /* columns of the input that the results read: n, beginning at `from`; some
                          may be in the padding */
} part;

static void update_maximum_by_row(const part *r, const float *x, int64_t row, float *columns) {
  const int64_t begin = larger_of(r->from, 0), end = smaller_of(r->from + r->n, r->p->window.w);
  for (int64_t at = begin; at < end;) {
    const int64_t n = smaller_of(count_contiguous_places(&r->p->in, row, at), end - at);
    const float *from = x + laci_sparse_offset(&r->p->in, r->channel, row, at);
    keep_larger_values(r->p, columns + (at - r->from), from, n);
    at += n;
  }
}

/* Copies n places that are `stride` apart to contiguous memory. stride is a constant where this is
 * inlined. */
static inline __attribute__((always_inline)) void gather_strided(const float *restrict from,
                                                                 int64_t n, const int64_t stride,
                                                                 float *restrict to) {
  for (int64_t at = 0; at < n; at++) to[at] = from[at * stride];
}

static void update_maximum_by_column(const part *r, const float *columns, int64_t tap,
                                     float *results) {
  const int64_t n = r->last - r->first, stride = r->p->window.stride_w;
  float taken[SOME];
  if (stride == 1) gather_strided(columns + tap, n, 1, taken);
  else if (stride == 2) gather_strided(columns + tap, n, 2, taken);
  else gather_strided(columns + tap, n, stride, taken);
  keep_larger_values(r->p, results, taken, n);
}

/* Copies n floats, at most LANES. A call of memcpy for so few would take too long. */
static void copy_few_floats(float *to, const float *from, int64_t n) {
#pragma GCC unroll 5
  for (int64_t some = LANES; some > 0; some /= 2) {
    if (!(n & some)) continue;
    memcpy(to, from, (size_t)some * sizeof *to);
    to += some;
    from += some;
  }
}

static void store_results(const part *r, const float *results, float *y) {
  const laci_sparse_layout *out = &r->p->out;
  const int64_t n = r->last - r->first;
  if (out->format != LACI_FORMAT_PC16P) {
    memcpy(y + laci_sparse_offset(out, r->channel, r->y, r->first), results, (size_t)n * sizeof *y);
    return;
  }
  uint64_t place = (uint64_t)((r->y + out->top) * out->row_stride + out->left + r->first);
  y += r->channel * out->channel_stride;
  for (int64_t at = 0, some; at < n; at += some, place += (uint64_t)some) {
    const int64_t lane = (int64_t)(place % LANES);
    some = smaller_of(LANES - lane, n - at);
    copy_few_floats(y + ((int64_t)place - lane) * out->pixel_stride + lane, results + at, some);
  }
}

static void pool_row_of_any_window(const part *r, const float *x, float *results) {
  const laci_sparse_window *g = &r->p->window;
  const int64_t top = r->y * g->stride_h - g->pad_top;
  float columns[LONGEST];
  fill_with_lowest_value(r->p, columns, r->n);
  fill_with_lowest_value(r->p, results, r->last - r->first);
  for (int64_t row = larger_of(top, 0); row < smaller_of(top + g->kernel_h, g->h); row++) {
    update_maximum_by_row(r, x, row, columns);
  }
  for (int64_t tap = 0; tap < g->kernel_w; tap++)
    update_maximum_by_column(r, columns, tap, results);
}

#if defined(LOAD)
#define INLINE static inline __attribute__((always_inline))

/* Returns the larger one of each pair of floats, or of bytes. */
INLINE vector larger_vector(const bool bytes, vector a, vector b) {
#if defined(__AVX512F__)
  if (bytes)
    return _mm512_castsi512_ps(_mm512_max_epu8(_mm512_castps_si512(a), _mm512_castps_si512(b)));
#elif defined(__AVX2__)
  if (bytes)
    return _mm256_castsi256_ps(_mm256_max_epu8(_mm256_castps_si256(a), _mm256_castps_si256(b)));
#else
  if (bytes)
    return vreinterpretq_f32_u8(vmaxq_u8(vreinterpretq_u8_f32(a), vreinterpretq_u8_f32(b)));
#endif
  return LARGER(a, b);
}

/* Computes the maximum of n_rows rows, for n words of each. It reads and writes whole vectors.
 * stride: number of words from one row to the next. */
INLINE void max_of_rows(const bool bytes, const float *from, int64_t stride, int64_t n_rows,
                        int64_t n, float *to) {
  for (int64_t at = 0; at < n; at += WIDTH) {
    vector v = ALL(bytes ? 0 : -INFINITY);
    for (int64_t row = 0; row < n_rows; row++)
      v = larger_vector(bytes, LOAD(from + row * stride + at), v);
    STORE(to + at, v);
  }
}

/* Computes for each of n results the maximum of `kernel` neighbouring columns. stride (1 or 2) is
 * that of the windows, a constant where this is inlined. */
INLINE void max_of_columns(const bool bytes, const float *from, int64_t kernel, int64_t n,
                           const int stride, float *to) {
  for (int64_t at = 0; at < n; at += WIDTH) {
    vector v = ALL(bytes ? 0 : -INFINITY);
    for (int64_t tap = 0; tap < kernel; tap++) {
      const float *x = from + tap + at * stride;
      const vector some = stride == 1 ? LOAD(x) : EVEN(LOAD(x), LOAD(x + WIDTH));
      v = larger_vector(bytes, some, v);
    }
    STORE(to + at, v);
  }
}

static bool can_pool_by_vectors(const part *r) {
  return r->p->in.format == LACI_FORMAT_CHW && r->p->window.stride_w <= 2;
}

/* Pools a part of a row. In CHW a vector may be read from every pixel on, since channels are filled
 * up; what is after the row is replaced. */
INLINE void pool_by_vectors_of(const bool bytes, const part *r, const float *x, float *results) {
  const laci_sparse_window *g = &r->p->window;
  const laci_sparse_layout *in = &r->p->in;
  const int64_t top = r->y * g->stride_h - g->pad_top, first = larger_of(top, 0);
  const int64_t begin = larger_of(r->from, 0), end = smaller_of(r->from + r->n, g->w);
  const int64_t n_rows = smaller_of(top + g->kernel_h, g->h) - first, n = r->last - r->first;
  const int64_t vectors = (n + WIDTH - 1) / WIDTH;
  float columns[SOME * 2 + LACI_MAX_POOL_KERNEL + WIDTH];
  fill_with_lowest_value(r->p, columns, begin - r->from);
  max_of_rows(bytes, x + laci_sparse_offset(in, r->channel, first, begin), in->row_stride, n_rows,
              end - begin, columns + (begin - r->from));
  fill_with_lowest_value(r->p, columns + (end - r->from),
                         vectors * WIDTH * g->stride_w + g->kernel_w - (end - r->from));
  if (g->stride_w == 1) max_of_columns(bytes, columns, g->kernel_w, n, 1, results);
  else max_of_columns(bytes, columns, g->kernel_w, n, 2, results);
}

static void pool_by_vectors(const part *r, const float *x, float *results) {
  if (r->p->window.values == LACI_SPARSE_F32) pool_by_vectors_of(false, r, x, results);
  else pool_by_vectors_of(true, r, x, results);
}
#endif

static void pool_part_of_row(const part *r, const float *x, float *y) {
  float results[SOME];
#if defined(LOAD)
  if (can_pool_by_vectors(r)) pool_by_vectors(r, x, results);
  else pool_row_of_any_window(r, x, results);
#else
  pool_row_of_any_window(r, x, results);
#endif
  store_results(r, results, y);
}

/* Pools a band of rows of one channel. */
static void pool_band_of_rows(const laci_max_pool *p, int64_t item, const float *x, float *y) {
  const laci_sparse_window *g = &p->window;
  const int64_t channels = laci_max_pool_n_channels(p), n = laci_max_pool_n_bands(p);
  const int64_t band = item / channels, channel = item % channels;
  for (int64_t row = band * g->out_h / n; row < (band + 1) * g->out_h / n; row++) {
    for (int64_t at = 0; at < g->out_w; at += SOME) {
      const int64_t last = smaller_of(at + SOME, g->out_w);
      const part r = {p,
                      channel,
                      row,
                      at,
                      last,
                      at * g->stride_w - g->pad_left,
                      (last - at - 1) * g->stride_w + g->kernel_w};
      pool_part_of_row(&r, x, y);
    }
  }
}

/* ---- HWC16N ---- */

static void pool_pixel_of_images(const laci_max_pool *p, int64_t row, int64_t column,
                                 const float *x, float *y) {
  const laci_sparse_window *g = &p->window;
  const int64_t n = laci_max_pool_n_channels(p) * LANES;
  const int64_t top = row * g->stride_h - g->pad_top, left = column * g->stride_w - g->pad_left;
  float *to = y + laci_sparse_offset(&p->out, 0, row, column);
  fill_with_lowest_value(p, to, n);
  for (int64_t at = larger_of(top, 0); at < smaller_of(top + g->kernel_h, g->h); at++) {
    for (int64_t tap = larger_of(left, 0); tap < smaller_of(left + g->kernel_w, g->w); tap++) {
      keep_larger_values(p, to, x + laci_sparse_offset(&p->in, 0, at, tap), n);
    }
  }
}

/* ---- All formats ---- */

void LACI_VARIANT(laci_max_pool)(const laci_max_pool *p, const float *x, float *y, int64_t first,
                                 int64_t last) {
  const int64_t each = laci_max_pool_items_per_block(p);
  for (int64_t item = first; item < last; item++) {
    const float *from = x + item / each * p->in.n_floats;
    float *to = y + item / each * p->out.n_floats;
    if (p->in.format != LACI_FORMAT_HWC16N) {
      pool_band_of_rows(p, item % each, from, to);
      continue;
    }
    for (int64_t column = 0; column < p->window.out_w; column++) {
      pool_pixel_of_images(p, item % each, column, from, to);
    }
  }
}
