/* SPDX-License-Identifier: Apache-2.0
 * reorder.h for every instruction set. A layout has vectors of 16 along one axis: pixels (planes,
 * panels), channels (blocks, rows) or images. Where both have the same, vectors are copied; else
 * tiles of 16 x 16 are transposed in registers, and what is no whole tile goes through memory
 * of our own. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "kernel/sparse/reorder_in.h"

enum { LANES = LACI_SPARSE_LANES };

/* ---- instruction sets ---- */

/* A part of a vector of places: value[lane] = at[index[lane]] for some lanes. */
typedef struct piece {
  int64_t at;
  uint32_t lanes, floats; /* bits: those lanes, and what of at[] they want */
  int32_t index[LANES];
} piece;

#if defined(__AVX512F__)
#include <immintrin.h>
enum { WIDTH = 16 };
typedef __m512 vector;
#define NOTHING() _mm512_setzero_ps()
#define LOAD(at) _mm512_loadu_ps(at)
#define STORE(at, x) _mm512_storeu_ps(at, x)

static inline vector fetch(vector into, const piece *p, const float *from) {
  const __m512 floats = _mm512_maskz_loadu_ps((__mmask16)p->floats, from + p->at);
  return _mm512_mask_permutexvar_ps(into, (__mmask16)p->lanes, _mm512_loadu_si512(p->index),
                                    floats);
}

static inline void transpose(vector x[16]) {
  vector t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(x[i], x[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps(x[i], x[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
#pragma GCC unroll 2
    for (int j = 0; j < 2; j++) {
      const __m512d a = _mm512_castps_pd(t[i + j]), b = _mm512_castps_pd(t[i + j + 2]);
      x[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
      x[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
    }
  }
  /* x[4 b + j]: in quarter q, column 4 q + j of rows 4 b to 4 b + 3. */
#pragma GCC unroll 4
  for (int j = 0; j < 4; j++) {
    const vector low = _mm512_shuffle_f32x4(x[j], x[j + 4], 0x88);
    const vector high = _mm512_shuffle_f32x4(x[j], x[j + 4], 0xDD);
    const vector low2 = _mm512_shuffle_f32x4(x[j + 8], x[j + 12], 0x88);
    const vector high2 = _mm512_shuffle_f32x4(x[j + 8], x[j + 12], 0xDD);
    x[j] = _mm512_shuffle_f32x4(low, low2, 0x88);
    x[j + 4] = _mm512_shuffle_f32x4(high, high2, 0x88);
    x[j + 8] = _mm512_shuffle_f32x4(low, low2, 0xDD);
    x[j + 12] = _mm512_shuffle_f32x4(high, high2, 0xDD);
  }
}
#elif defined(__AVX2__)
#include <immintrin.h>
enum { WIDTH = 8 };
typedef __m256 vector;
#define NOTHING() _mm256_setzero_ps()
#define LOAD(at) _mm256_loadu_ps(at)
#define STORE(at, x) _mm256_storeu_ps(at, x)

static inline __m256i mask_of(uint32_t bits) {
  const __m256i each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)bits), each), each);
}

static inline vector fetch(vector into, const piece *p, const float *from) {
  const __m256 floats = _mm256_maskload_ps(from + p->at, mask_of(p->floats));
  const __m256i index = _mm256_loadu_si256((const __m256i *)p->index);
  return _mm256_blendv_ps(into, _mm256_permutevar8x32_ps(floats, index),
                          _mm256_castsi256_ps(mask_of(p->lanes)));
}

static inline void transpose(vector x[8]) {
  vector t[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(x[i], x[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(x[i], x[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
#pragma GCC unroll 2
    for (int j = 0; j < 2; j++) {
      const __m256d a = _mm256_castps_pd(t[i + j]), b = _mm256_castps_pd(t[i + j + 2]);
      x[i + 2 * j] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, b));
      x[i + 2 * j + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, b));
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < 4; j++) {
    const vector low = x[j], high = x[j + 4];
    x[j] = _mm256_permute2f128_ps(low, high, 0x20);
    x[j + 4] = _mm256_permute2f128_ps(low, high, 0x31);
  }
}
#else
#include <arm_neon.h>
enum { WIDTH = 4 };
typedef float32x4_t vector;
#define NOTHING() vdupq_n_f32(0)
#define LOAD(at) vld1q_f32(at)
#define STORE(at, x) vst1q_f32(at, x)

static inline vector fetch(vector into, const piece *p, const float *from) {
  float lanes[WIDTH];
  vst1q_f32(lanes, into);
  for (int lane = 0; lane < WIDTH; lane++) {
    if (p->lanes >> lane & 1) lanes[lane] = from[p->at + p->index[lane]];
  }
  return vld1q_f32(lanes);
}

static inline void transpose(vector x[4]) {
  const float64x2_t a = vreinterpretq_f64_f32(vtrn1q_f32(x[0], x[1]));
  const float64x2_t b = vreinterpretq_f64_f32(vtrn2q_f32(x[0], x[1]));
  const float64x2_t c = vreinterpretq_f64_f32(vtrn1q_f32(x[2], x[3]));
  const float64x2_t d = vreinterpretq_f64_f32(vtrn2q_f32(x[2], x[3]));
  x[0] = vreinterpretq_f32_f64(vtrn1q_f64(a, c));
  x[1] = vreinterpretq_f32_f64(vtrn1q_f64(b, d));
  x[2] = vreinterpretq_f32_f64(vtrn2q_f64(a, c));
  x[3] = vreinterpretq_f32_f64(vtrn2q_f64(b, d));
}
#endif

/* ---- where things are ---- */

typedef enum axis { PIXELS, CHANNELS, IMAGES } axis;

static axis axis_of(const laci_sparse_layout *l) {
  if (laci_sparse_has_pixels(l)) return PIXELS;
  return l->lanes == LACI_SPARSE_IMAGES ? IMAGES : CHANNELS;
}

static int64_t image_at(const laci_sparse_layout *l, int64_t image) {
  return (l->lanes == LACI_SPARSE_IMAGES ? image / LANES : image) * l->n_floats;
}

static int64_t channel_at(const laci_sparse_layout *l, int64_t channel) {
  return (l->lanes == LACI_SPARSE_BLOCKS ? channel / LANES : channel) * l->channel_stride;
}

/* Of the vector that begins at a place: planes and panels. */
static int64_t vector_at(const laci_sparse_layout *l, int64_t place) {
  return l->lanes == LACI_SPARSE_PANELS ? place * l->pixel_stride : place;
}

/* ---- transposed ---- */

/* to[j][i] = from[i][j]; n_read and n_written floats there are of each source and target. */
typedef struct tile {
  const float *from[LANES];
  float *to[LANES];
  int64_t n_read, n_written;
} tile;

static void transpose_full(const float *const *from, float *const *to) {
  for (int i = 0; i < LANES; i += WIDTH) {
    for (int j = 0; j < LANES; j += WIDTH) {
      vector x[WIDTH];
#pragma GCC unroll 16
      for (int k = 0; k < WIDTH; k++) x[k] = LOAD(from[i + k] + j);
      transpose(x);
#pragma GCC unroll 16
      for (int k = 0; k < WIDTH; k++) STORE(to[j + k] + i, x[k]);
    }
  }
}

static void transpose_part(const tile *t) {
  float in[LANES][LANES] = {{0}}, out[LANES][LANES];
  const float *from[LANES];
  float *to[LANES];
  for (int i = 0; i < LANES; i++) {
    memcpy(in[i], t->from[i], (size_t)t->n_read * sizeof(float));
    from[i] = in[i];
    to[i] = out[i];
  }
  transpose_full(from, to);
  for (int j = 0; j < LANES; j++) memcpy(t->to[j], out[j], (size_t)t->n_written * sizeof(float));
}

/* What an item's tiles have in common. Sources of a tile are apart along the target's axis, and
 * targets along the source's. */
typedef struct work {
  const laci_sparse_reorder *r;
  const laci_sparse_item *item;
  const float *from; /* of the first image */
  float *to;
  axis from_axis, to_axis;
  int64_t from_apart, to_apart; /* from one channel or image to the next, whichever it is */
} work;

static int64_t lanes_of(const laci_sparse_item *item, axis a, int64_t channel, int64_t place) {
  const int64_t n = a == PIXELS     ? item->n_places - place
                    : a == CHANNELS ? item->n_channels - channel
                                    : item->n_images;
  return n < LANES ? n : LANES;
}

static bool any_pixel(const int64_t *pixel) {
  int64_t all = -1;
  for (int lane = 0; lane < LANES; lane++) all &= pixel[lane];
  return all >= 0;
}

/* The tile that begins at a channel and a place of the item. */
static void transpose_tile(const work *w, int64_t channel, int64_t place) {
  static const float zeros[LANES];
  float nowhere[LANES];
  const laci_sparse_item *item = w->item;
  const laci_sparse_layout *in = &w->r->from, *out = &w->r->to;
  const int64_t n_sources = lanes_of(item, w->to_axis, channel, place);
  const int64_t n_targets = lanes_of(item, w->from_axis, channel, place);
  const int64_t *from_pixel = item->from + place, *to_pixel = item->to + place;
  const float *from = w->from + channel_at(in, item->channel + channel);
  float *to = w->to + channel_at(out, item->channel + channel);
  tile t = {.n_read = w->from_axis == IMAGES ? LANES : n_targets,
            .n_written = w->to_axis == IMAGES ? LANES : n_sources};
  if (w->from_axis == PIXELS) from += vector_at(in, item->place + place);
  else if (w->to_axis != PIXELS) from += *from_pixel;
  if (w->to_axis == PIXELS) to += vector_at(out, item->place + place);
  else if (w->from_axis != PIXELS) to += *to_pixel;
  for (int i = 0; i < LANES; i++) {
    const int64_t at = w->to_axis == PIXELS ? from_pixel[i]
                       : i < n_sources      ? i * w->from_apart
                                            : -1;
    t.from[i] = at < 0 ? zeros : from + at;
  }
  for (int j = 0; j < LANES; j++) {
    const int64_t at = w->from_axis == PIXELS ? to_pixel[j] : j < n_targets ? j * w->to_apart : -1;
    t.to[j] = at < 0 ? nowhere : to + at;
  }
  if (t.n_read == LANES && t.n_written == LANES) transpose_full(t.from, t.to);
  else transpose_part(&t);
}

/* Inner loops go where the target goes on. */
static void transpose_item(const work *w) {
  const laci_sparse_item *item = w->item;
  const bool by_channel = w->from_axis != CHANNELS && w->to_axis != CHANNELS;
  const bool by_pixel = w->from_axis != PIXELS && w->to_axis != PIXELS;
  const int64_t n_channels = by_channel ? item->n_channels : (item->n_channels + LANES - 1) / LANES;
  const int64_t n_places = by_pixel ? item->n_places : (item->n_places + LANES - 1) / LANES;
  const bool places_last =
      w->r->to.lanes == LACI_SPARSE_PLANES || w->r->to.lanes == LACI_SPARSE_BLOCKS;
  const int64_t n_inner = places_last ? n_places : n_channels;
  const int64_t n_outer = places_last ? n_channels : n_places;
  for (int64_t outer = 0; outer < n_outer; outer++) {
    for (int64_t inner = 0; inner < n_inner; inner++) {
      const int64_t channel = (places_last ? outer : inner) * (by_channel ? 1 : LANES);
      const int64_t place = (places_last ? inner : outer) * (by_pixel ? 1 : LANES);
      if (by_pixel ? item->to[place] < 0 : w->to_axis != PIXELS && !any_pixel(item->to + place)) {
        continue;
      }
      transpose_tile(w, channel, place);
    }
  }
}

/* ---- copied ---- */

static void copy_channels(const work *w) {
  const laci_sparse_item *item = w->item;
  const laci_sparse_layout *in = &w->r->from, *out = &w->r->to;
  const bool whole = in->lanes == LACI_SPARSE_ROWS && out->lanes == LACI_SPARSE_ROWS;
  const int64_t most = whole ? LACI_SPARSE_CHUNK : LANES, end = item->channel + item->n_channels;
  for (int64_t channel = item->channel; channel < end; channel += most) {
    const float *from = w->from + channel_at(in, channel);
    float *to = w->to + channel_at(out, channel);
    const int64_t n = end - channel < most ? end - channel : most;
    for (int64_t at = 0; at < item->n_places; at++) {
      memcpy(to + item->to[at], from + item->from[at], (size_t)n * sizeof(float));
    }
  }
}

static void copy_images(const work *w) {
  const laci_sparse_item *item = w->item;
  const int64_t first = item->channel * LANES, n = item->n_channels * LANES;
  for (int64_t at = 0; at < item->n_places; at++) {
    float *to = w->to + item->to[at] + first;
    memcpy(to, w->from + item->from[at] + first, (size_t)n * sizeof(float));
    for (int64_t lane = 0; lane < n; lane++) {
      if (lane % LANES >= item->n_images) to[lane] = 0;
    }
  }
}

/* What one vector of places wants of the source, in as few pieces as there are neighbours. */
static int pieces_of(const int64_t *pixel, piece *pieces) {
  int n = 0;
  uint32_t left = 0;
  for (int lane = 0; lane < WIDTH; lane++) left |= (uint32_t)(pixel[lane] >= 0) << lane;
  while (left) {
    piece *p = &pieces[n++];
    *p = (piece){.at = pixel[__builtin_ctz(left)]};
    for (int lane = 0; lane < WIDTH; lane++) {
      const int64_t index = pixel[lane] - p->at;
      if (!(left >> lane & 1) || index < 0 || index >= WIDTH) continue;
      p->index[lane] = (int32_t)index;
      p->lanes |= 1U << lane;
      p->floats |= 1U << index;
    }
    left &= ~p->lanes;
  }
  return n;
}

static void copy_vector(const float *from, const piece *pieces, int n, float *to,
                        int64_t n_places) {
  vector v = NOTHING();
  for (int at = 0; at < n; at++) v = fetch(v, &pieces[at], from);
  if (n_places >= WIDTH) {
    STORE(to, v);
  } else {
    float lanes[WIDTH];
    STORE(lanes, v);
    memcpy(to, lanes, (size_t)n_places * sizeof(float));
  }
}

static void copy_pixels(const work *w) {
  enum { N_VECTORS = LACI_SPARSE_CHUNK / WIDTH };
  const laci_sparse_item *item = w->item;
  piece pieces[LACI_SPARSE_CHUNK];
  int begin[N_VECTORS + 1] = {0};
  const int n_vectors = (int)((item->n_places + WIDTH - 1) / WIDTH);
  for (int at = 0; at < n_vectors; at++) {
    begin[at + 1] = begin[at] + pieces_of(item->from + (ptrdiff_t)at * WIDTH, &pieces[begin[at]]);
  }
  for (int64_t c = 0; c < item->n_channels; c++) {
    const float *from = w->from + channel_at(&w->r->from, item->channel + c);
    float *to = w->to + channel_at(&w->r->to, item->channel + c);
    for (int at = 0; at < n_vectors; at++) {
      const int64_t place = (int64_t)at * WIDTH, in_vector = place % LANES;
      copy_vector(from, &pieces[begin[at]], begin[at + 1] - begin[at],
                  to + vector_at(&w->r->to, item->place + place - in_vector) + in_vector,
                  item->n_places - place);
    }
  }
}

/* ---- all ---- */

void LACI_VARIANT(laci_sparse_reorder)(const laci_sparse_reorder *r, const float *from, float *to,
                                       int64_t first, int64_t last) {
  laci_sparse_item item;
  work w = {.r = r, .item = &item, .from_axis = axis_of(&r->from), .to_axis = axis_of(&r->to)};
  w.from_apart = w.to_axis == IMAGES ? r->from.n_floats : r->from.channel_stride;
  w.to_apart = w.from_axis == IMAGES ? r->to.n_floats : r->to.channel_stride;
  for (int64_t index = first; index < last; index++) {
    laci_sparse_item_of(r, index, &item);
    w.from = from + image_at(&r->from, item.image);
    w.to = to + image_at(&r->to, item.image);
    if (w.from_axis != w.to_axis) transpose_item(&w);
    else if (w.from_axis == CHANNELS) copy_channels(&w);
    else if (w.from_axis == IMAGES) copy_images(&w);
    else copy_pixels(&w);
  }
  if (laci_sparse_has_pixels(&r->to)) return; /* its vectors have all, zeros too */
  const int64_t n = laci_sparse_reorder_items(r);
  const int64_t n_border = laci_sparse_zero_border_items(&r->to, &r->size);
  laci_sparse_zero_border(&r->to, &r->size, to, n_border * first / n, n_border * last / n);
}
