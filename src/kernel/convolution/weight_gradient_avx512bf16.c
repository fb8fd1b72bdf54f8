/* SPDX-License-Identifier: Apache-2.0
 * weight_gradient.h by AVX512-BF16. A register holds an entry, two positions of a block as
 * [channel][position]. The innermost loop multiplies an entry of dy by the pair of one input
 * channel, broadcast to all lanes. 16 registers are the sums of 16 channels in and out, for one tap
 * of the window or one point, over all rows of a band. */
#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#include "base/min.h"
#include "kernel/convolution/pixels_avx512.h"
#include "kernel/convolution/weight_gradient.h"

enum { BLOCK = LACI_GRADIENT_BLOCK, TILE = LACI_GRADIENT_TILE, POINTS = LACI_WINOGRAD_POINTS };

#define INLINE static inline __attribute__((always_inline))

typedef struct entry {
  uint32_t pair[BLOCK]; /* the two positions of each channel */
} entry;

INLINE void store_interleaved_pair(entry *to, __m512i two) {
  _mm512_store_si512(to->pair, laci_interleave_pixels(two));
}

/** A row of pixels, 16 channels each; reads outside of the row give zeros. */
typedef struct line {
  const uint16_t *pixels;
  int64_t width;
} line;

/* ---- Pixels without a transform ---- */

/** Entry e of a row holds pixel first + e * step and the pixel `apart` after it. */
typedef struct pairing {
  int64_t first, step, apart, n;
} pairing;

INLINE void store_pixel_pair(const line *l, const pairing *p, int64_t e, entry *to) {
  int64_t at = p->first + e * p->step;
  __m512i low = _mm512_castsi256_si512(laci_pixel_or_zeros(l->pixels, l->width, at));
  store_interleaved_pair(
      to + e, _mm512_inserti64x4(low, laci_pixel_or_zeros(l->pixels, l->width, at + p->apart), 1));
}

static void store_paired_row(const line *l, const pairing *p, entry *to) {
  int64_t e = 0;
  for (; e < p->n && p->first + e * p->step < 0; e++) store_pixel_pair(l, p, e, to);
  if (p->apart == 1) { /* neighbouring pixels inside the row are read together */
    const uint16_t *from = l->pixels + (p->first + e * p->step) * BLOCK;
    int64_t capacity = l->width - 2 - p->first, inside = capacity < 0 ? 0 : capacity / p->step + 1;
    for (; e < p->n && e < inside; e++, from += p->step * BLOCK) {
      store_interleaved_pair(to + e, _mm512_loadu_si512(from));
    }
  }
  for (; e < p->n; e++) store_pixel_pair(l, p, e, to);
}

/* ---- Points of two tiles ---- */

INLINE __m512 load_pixel_floats(const line *l, int64_t at) {
  return laci_pixel_floats(l->pixels, l->width, at);
}

INLINE void store_point_pair(entry *to, __m512 first, __m512 second) {
  store_interleaved_pair(to, (__m512i)_mm512_cvtne2ps_pbh(second, first));
}

/** Transforms a row of the input, from pixel `first` on, into n entries for each of the four
 * points: to[4][n]. The tiles overlap by two pixels. */
static void transform_input_row(const line *l, int64_t first, int64_t n, entry *to) {
  int64_t at = first;
  __m512 d0 = load_pixel_floats(l, at), d1 = load_pixel_floats(l, at + 1);
  for (int64_t e = 0; e < n; e++, at += 4, to++) {
    __m512 d2 = load_pixel_floats(l, at + 2), d3 = load_pixel_floats(l, at + 3);
    __m512 d4 = load_pixel_floats(l, at + 4), d5 = load_pixel_floats(l, at + 5);
    store_point_pair(to, _mm512_sub_ps(d0, d2), _mm512_sub_ps(d2, d4));
    store_point_pair(to + n, _mm512_add_ps(d1, d2), _mm512_add_ps(d3, d4));
    store_point_pair(to + 2 * n, _mm512_sub_ps(d2, d1), _mm512_sub_ps(d4, d3));
    store_point_pair(to + 3 * n, _mm512_sub_ps(d1, d3), _mm512_sub_ps(d3, d5));
    d0 = d4;
    d1 = d5;
  }
}

/** Transforms a row of dy into n entries for each of the four points (weight_gradient.h). Entry e
 * of point i is written to to[i * point_stride + e]. */
static void transform_output_row(const line *l, int64_t n, int64_t point_stride, entry *to) {
  const __m512i sign = _mm512_set1_epi32(INT32_MIN);
  for (int64_t e = 0; e < n; e++, to++) {
    __m512 y0 = load_pixel_floats(l, 4 * e), y1 = load_pixel_floats(l, 4 * e + 1);
    __m512 y2 = load_pixel_floats(l, 4 * e + 2), y3 = load_pixel_floats(l, 4 * e + 3);
    __m512i last = (__m512i)_mm512_cvtne2ps_pbh(y3, y1);
    store_point_pair(to, y0, y2);
    store_point_pair(to + point_stride, _mm512_add_ps(y0, y1), _mm512_add_ps(y2, y3));
    store_point_pair(to + 2 * point_stride, _mm512_sub_ps(y0, y1), _mm512_sub_ps(y2, y3));
    store_interleaved_pair(
        to + 3 * point_stride,
        _mm512_xor_si512(last, _mm512_or_si512(_mm512_srli_epi32(sign, 16), sign)));
  }
}

/* ---- Bands ---- */

/** The band that is computed now: rows [row, row + rows) of images [n, n + images). */
typedef struct band {
  laci_gradient_band most;
  int64_t n, images, row, rows;
  entry *in;  /* [images][in_rows][entries] of one channel block */
  entry *out; /* [blocks of the part][points][images][rows][pairs]; without Winograd there is one
                 point */
} band;

static void pack_input_pixel_pairs(const laci_weight_gradient *g,
                                   const laci_weight_gradient_part *part, const band *b,
                                   int64_t c) {
  const laci_gradient_band *m = &b->most;
  const pairing p = {.first = -g->pad_left, .step = 1, .apart = g->stride_w, .n = m->entries};
  int64_t in_rows = (b->rows - 1) * g->stride_h + g->kernel_h;
  for (int64_t image = 0; image < b->images; image++) {
    const uint16_t *x = part->x + ((b->n + image) * g->c_blocks + c) * g->h * g->w * BLOCK;
    for (int64_t i = 0; i < in_rows; i++) {
      int64_t row = b->row * g->stride_h + i - g->pad_top;
      const line l = {x + row * g->w * BLOCK, g->w};
      entry *to = b->in + (image * m->in_rows + i) * m->entries;
      if (row < 0 || row >= g->h) memset(to, 0, (size_t)m->entries * sizeof *to);
      else if (g->winograd) transform_input_row(&l, -g->pad_left, m->pairs, to);
      else store_paired_row(&l, &p, to);
    }
  }
}

static void pack_output_pixel_pairs(const laci_weight_gradient *g,
                                    const laci_weight_gradient_part *part, const band *b) {
  const pairing p = {.step = 2, .apart = 1, .n = b->most.pairs};
  int64_t point_stride = b->images * b->rows * p.n;
  entry *to = b->out;
  for (int64_t k = part->k_first; k < part->k_last; k++) {
    for (int64_t image = 0; image < b->images; image++) {
      int64_t first = ((b->n + image) * g->k_blocks + k) * g->out_h + b->row;
      for (int64_t row = 0; row < b->rows; row++, to += p.n) {
        const line l = {part->dy + (first + row) * g->out_w * BLOCK, g->out_w};
        if (g->winograd) transform_output_row(&l, p.n, point_stride, to);
        else store_paired_row(&l, &p, to);
      }
    }
    if (g->winograd) to += (POINTS - 1) * point_stride;
  }
}

/** Adds the products over the band to sums [in][out]; in: the entry that is multiplied by the first
 * entry of out. */
static void add_band_products(const band *b, int64_t row_step, const entry *in, const entry *out,
                              float *sums) {
  const laci_gradient_band *m = &b->most;
  __m512 s[BLOCK];
#pragma GCC unroll 16
  for (int c = 0; c < BLOCK; c++) s[c] = _mm512_loadu_ps(sums + c * BLOCK);
  for (int64_t image = 0; image < b->images; image++) {
    const entry *row = in + image * m->in_rows * m->entries;
    for (int64_t r = 0; r < b->rows; r++, row += row_step) {
      const entry *x = row;
      for (int64_t pair = 0; pair < m->pairs; pair++, x += m->input_step, out++) {
        __m512bh dy = (__m512bh)_mm512_load_si512(out->pair);
#pragma GCC unroll 16
        for (int c = 0; c < BLOCK; c++) {
          s[c] = _mm512_dpbf16_ps(s[c], dy, (__m512bh)_mm512_set1_epi32((int)x->pair[c]));
        }
      }
    }
  }
#pragma GCC unroll 16
  for (int c = 0; c < BLOCK; c++) _mm512_storeu_ps(sums + c * BLOCK, s[c]);
}

/** Adds all sums of one input block and one output block. out: the entries of dy of the output
 * block. */
static void add_sums_of_window(const laci_weight_gradient *g, const band *b, const entry *out,
                               float *sums) {
  int64_t places = g->winograd ? POINTS : g->kernel_w, n = b->most.entries;
  int64_t in_step = g->winograd ? b->most.pairs : 1;
  int64_t out_step = g->winograd ? b->images * b->rows * b->most.pairs : 0;
  for (int64_t i = 0; i < g->kernel_h; i++) {
    for (int64_t j = 0; j < places; j++, sums += TILE) {
      add_band_products(b, g->stride_h * n, b->in + i * n + j * in_step, out + j * out_step, sums);
    }
  }
}

static void add_sums_of_band(const laci_weight_gradient *g, const laci_weight_gradient_part *part,
                             const band *b) {
  int64_t n_sums = laci_weight_gradient_n_sums(g) * TILE;
  int64_t block = b->images * b->rows * b->most.pairs * (g->winograd ? POINTS : 1);
  pack_output_pixel_pairs(g, part, b);
  for (int64_t c = part->c_first; c < part->c_last; c++) {
    pack_input_pixel_pairs(g, part, b, c);
    for (int64_t k = part->k_first; k < part->k_last; k++) {
      add_sums_of_window(g, b, b->out + (k - part->k_first) * block,
                         part->sums + (k * g->c_blocks + c) * n_sums);
    }
  }
}

void laci_weight_sums_avx512bf16(const laci_weight_gradient *g,
                                 const laci_weight_gradient_part *part) {
  int64_t n_sums = laci_weight_gradient_n_sums(g) * TILE;
  size_t row = (size_t)((part->c_last - part->c_first) * n_sums);
  band b = {.most = laci_weight_gradient_choose_band(g)};
  b.in = part->scratch;
  b.out = b.in + b.most.images * b.most.in_rows * b.most.entries;
  for (int64_t k = part->k_first; k < part->k_last; k++) {
    float *first = part->sums + (k * g->c_blocks + part->c_first) * n_sums;
    memset(first, 0, row * sizeof *first);
  }
  for (b.n = part->n_first; b.n < part->n_last; b.n += b.images) {
    b.images = laci_min(b.most.images, part->n_last - b.n);
    for (b.row = 0; b.row < g->out_h; b.row += b.rows) {
      b.rows = laci_min(b.most.rows, g->out_h - b.row);
      add_sums_of_band(g, part, &b);
    }
  }
}
