/* SPDX-License-Identifier: Apache-2.0
 * The reorder of reorder.h, compiled for every instruction set. Each layout has vectors of 16
 * values along one axis: pixels (CHW, PC16P), channels (CHW16C, HWC) or images (HWC16N). If source
 * and target have the same axis, vectors are copied. Otherwise tiles of 16 x 16 are transposed in
 * registers; incomplete tiles go through a buffer. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "kernel/sparse/reorder_in.h"
#include "kernel/variants.h"

enum { LANES = LACI_SPARSE_LANES };

/* ---- Instruction sets ---- */

#if defined(__AVX512F__)
#include <immintrin.h>
enum { WIDTH = 16 };
typedef __m512 vector;
#define NOTHING() _mm512_setzero_ps()
#define LOAD(at) _mm512_loadu_ps(at)
#define STORE(at, x) _mm512_storeu_ps(at, x)
#define PAIRS_LOW(a, b) _mm512_unpacklo_ps(a, b)
#define PAIRS_HIGH(a, b) _mm512_unpackhi_ps(a, b)
#define HALVES_LOW(a, b) _mm512_shuffle_ps(a, b, 0x44)
#define HALVES_HIGH(a, b) _mm512_shuffle_ps(a, b, 0xEE)

static inline vector load_four_of_each(const float *const *from, int64_t at) {
  const __m512 low = _mm512_castps128_ps512(_mm_loadu_ps(from[0] + at));
  const __m512 two = _mm512_insertf32x4(low, _mm_loadu_ps(from[4] + at), 1);
  const __m512 three = _mm512_insertf32x4(two, _mm_loadu_ps(from[8] + at), 2);
  return _mm512_insertf32x4(three, _mm_loadu_ps(from[12] + at), 3);
}

typedef __mmask16 mask;
typedef __m512i order;
#define MASK_OF(used) _mm512_movepi32_mask(_mm512_loadu_si512(used))
#define ORDER_OF(index) _mm512_loadu_si512(index)

static inline vector gather_nearby_lanes(vector into, const float *from, mask used, order index) {
  const __m512 floats = _mm512_maskz_loadu_ps(used, from);
  return _mm512_or_ps(into, _mm512_permutexvar_ps(index, floats));
}

static inline vector normalize_vector(vector x, float scale, float shift, float low) {
  const __m512 product = _mm512_mul_ps(x, _mm512_set1_ps(scale));
  return _mm512_max_ps(_mm512_set1_ps(low), _mm512_add_ps(product, _mm512_set1_ps(shift)));
}

static inline vector zero_unused_lanes(vector x, const int32_t *used) {
  return _mm512_and_ps(x, _mm512_castsi512_ps(_mm512_loadu_si512(used)));
}
#elif defined(__AVX2__)
#include <immintrin.h>
enum { WIDTH = 8 };
typedef __m256 vector;
#define NOTHING() _mm256_setzero_ps()
#define LOAD(at) _mm256_loadu_ps(at)
#define STORE(at, x) _mm256_storeu_ps(at, x)
#define PAIRS_LOW(a, b) _mm256_unpacklo_ps(a, b)
#define PAIRS_HIGH(a, b) _mm256_unpackhi_ps(a, b)
#define HALVES_LOW(a, b) _mm256_shuffle_ps(a, b, 0x44)
#define HALVES_HIGH(a, b) _mm256_shuffle_ps(a, b, 0xEE)

static inline vector load_four_of_each(const float *const *from, int64_t at) {
  const __m256 low = _mm256_castps128_ps256(_mm_loadu_ps(from[0] + at));
  return _mm256_insertf128_ps(low, _mm_loadu_ps(from[4] + at), 1);
}

typedef __m256i mask, order;
#define MASK_OF(used) _mm256_loadu_si256((const __m256i *)(used))
#define ORDER_OF(index) _mm256_loadu_si256((const __m256i *)(index))

static inline vector gather_nearby_lanes(vector into, const float *from, mask used, order index) {
  return _mm256_or_ps(into, _mm256_permutevar8x32_ps(_mm256_maskload_ps(from, used), index));
}

static inline vector normalize_vector(vector x, float scale, float shift, float low) {
  const __m256 product = _mm256_mul_ps(x, _mm256_set1_ps(scale));
  return _mm256_max_ps(_mm256_set1_ps(low), _mm256_add_ps(product, _mm256_set1_ps(shift)));
}

static inline vector zero_unused_lanes(vector x, const int32_t *used) {
  return _mm256_and_ps(x, _mm256_loadu_ps((const float *)used));
}
#else
#include <arm_neon.h>
enum { WIDTH = 4 };
typedef float32x4_t vector;
#define NOTHING() vdupq_n_f32(0)
#define LOAD(at) vld1q_f32(at)
#define STORE(at, x) vst1q_f32(at, x)
#define PAIRS_LOW(a, b) vzip1q_f32(a, b)
#define PAIRS_HIGH(a, b) vzip2q_f32(a, b)
#define HALVES_LOW(a, b) vcombine_f32(vget_low_f32(a), vget_low_f32(b))
#define HALVES_HIGH(a, b) vcombine_f32(vget_high_f32(a), vget_high_f32(b))

static inline vector load_four_of_each(const float *const *from, int64_t at) {
  return vld1q_f32(from[0] + at);
}

typedef const int32_t *mask, *order;
#define MASK_OF(used) (used)
#define ORDER_OF(index) (index)

static inline vector gather_nearby_lanes(vector into, const float *from, mask used, order index) {
  float lanes[WIDTH];
  vst1q_f32(lanes, into);
  for (int lane = 0; lane < WIDTH; lane++) {
    if (used[index[lane]]) lanes[lane] = from[index[lane]];
  }
  return vld1q_f32(lanes);
}

static inline vector normalize_vector(vector x, float scale, float shift, float low) {
  const vector y = vaddq_f32(vmulq_n_f32(x, scale), vdupq_n_f32(shift)), bound = vdupq_n_f32(low);
  return vbslq_f32(vcltq_f32(y, bound), bound, y);
}

static inline vector zero_unused_lanes(vector x, const int32_t *used) {
  return vreinterpretq_f32_s32(vandq_s32(vreinterpretq_s32_f32(x), vld1q_s32(used)));
}
#endif

/* ---- Positions ---- */

typedef enum axis { PIXELS, CHANNELS, IMAGES } axis;

static axis vector_axis(const laci_sparse_layout *l) {
  if (laci_sparse_lanes_are_pixels(l)) return PIXELS;
  return l->format == LACI_FORMAT_HWC16N ? IMAGES : CHANNELS;
}

static int64_t image_offset(const laci_sparse_layout *l, int64_t image) {
  return (l->format == LACI_FORMAT_HWC16N ? image / LANES : image) * l->n_floats;
}

static int64_t channel_offset(const laci_sparse_layout *l, int64_t channel) {
  return (l->format == LACI_FORMAT_CHW16C ? channel / LANES : channel) * l->channel_stride;
}

/* Returns the offset in CHW or PC16P of the vector that begins at a place of the long row. */
static int64_t vector_offset(const laci_sparse_layout *l, int64_t place) {
  return l->format == LACI_FORMAT_PC16P ? place * l->pixel_stride : place;
}

/* ---- Transposing ---- */

/* How a tile is normalized. A target is a vector of the tile that is stored. It belongs to one
 * channel, and its lanes are pixels or images. */
typedef struct tile_norm {
  float scale[LANES], shift[LANES], low; /* scale and shift of each target; low is the lower bound
                                            of all values */
  int32_t used[LANES];                   /* for each lane -1 if it is a value, 0 if it is padding */
} tile_norm;

/* Stores x in a target vector, from a lane on. It is normalized if n is not NULL. */
static inline __attribute__((always_inline)) void store_vector(const tile_norm *n, int64_t target,
                                                               int64_t lane, vector x, float *to) {
  if (n)
    x = zero_unused_lanes(normalize_vector(x, n->scale[target], n->shift[target], n->low),
                          n->used + lane);
  STORE(to + lane, x);
}

/* Transposes blocks of 4 x 4 floats: each quarter of a vector holds floats of four source
 * vectors. */
static inline __attribute__((always_inline)) void transpose_fours(const float *const *from,
                                                                  int64_t column, float *const *to,
                                                                  int64_t row, const tile_norm *n) {
  const float *const *rows = from + row;
  const vector a = load_four_of_each(rows, column), b = load_four_of_each(rows + 1, column);
  const vector c = load_four_of_each(rows + 2, column), d = load_four_of_each(rows + 3, column);
  const vector ab = PAIRS_LOW(a, b), ab2 = PAIRS_HIGH(a, b);
  const vector cd = PAIRS_LOW(c, d), cd2 = PAIRS_HIGH(c, d);
  store_vector(n, column, row, HALVES_LOW(ab, cd), to[column]);
  store_vector(n, column + 1, row, HALVES_HIGH(ab, cd), to[column + 1]);
  store_vector(n, column + 2, row, HALVES_LOW(ab2, cd2), to[column + 2]);
  store_vector(n, column + 3, row, HALVES_HIGH(ab2, cd2), to[column + 3]);
}

/* Transposes a full tile of 16 x 16. n: how targets are normalized; NULL: they are not. Whether it
 * is NULL is known where this is inlined. */
static inline __attribute__((always_inline)) void transpose_full_tile(const float *const *from,
                                                                      float *const *to,
                                                                      const tile_norm *n) {
  for (int row = 0; row < LANES; row += WIDTH) {
#pragma GCC unroll 4
    for (int column = 0; column < LANES; column += 4) transpose_fours(from, column, to, row, n);
  }
}

static void transpose_and_normalize(const float *const *from, float *const *to,
                                    const tile_norm *n) {
  transpose_full_tile(from, to, n);
}

static inline void transpose_whole_tile(const float *const *from, float *const *to,
                                        const tile_norm *n) {
  if (n) transpose_and_normalize(from, to, n);
  else transpose_full_tile(from, to, NULL);
}

/* What all tiles of an item have in common. The vectors that a tile loads are its sources, those
 * that it stores its targets. Sources follow each other along the target's axis, targets along the
 * source's axis. */
typedef struct work {
  const laci_sparse_reorder *r;
  const laci_sparse_item *item;
  const float *from; /* the item's first image in the source */
  float *to;
  axis from_axis, to_axis;
  bool by_channel; /* true: lanes are pixels in one layout and images in the other, and a tile has
                      one channel */
  bool by_pixel;   /* true: lanes are channels in one layout and images in the other, and a tile has
                      one pixel */
  /* Offsets of a tile's 16 lanes, if these are channels or images. If they are pixels, the item has
     their offsets. */
  int64_t from_lanes[LANES], to_lanes[LANES];
} work;

static int64_t count_lanes_of_item(const laci_sparse_item *item, axis a, int64_t channel,
                                   int64_t place) {
  const int64_t n = a == PIXELS     ? item->n_places - place
                    : a == CHANNELS ? item->n_channels - channel
                                    : item->n_images;
  return n < LANES ? n : LANES;
}

/* Returns whether one of 16 offsets is not -1. */
static bool has_valid_offset(const int64_t *pixel) {
  int64_t all = -1;
  for (int lane = 0; lane < LANES; lane++) all &= pixel[lane];
  return all >= 0;
}

/* A tile: to[j][i] = from[i][j] for i < n_from, j < n_to. A source that does not exist points to
 * zeros, such a target to unused memory. Each source has n_read floats, each target n_written. */
typedef struct tile {
  const float *from[LANES];
  float *to[LANES];
  int64_t n_from, n_to, n_read, n_written;
} tile;

static const float zeros[LANES];

/* Sets *t to the tile that begins at a channel and a place of the item. nowhere: unused memory, for
 * targets that do not exist. */
static void locate_tile_vectors(const work *w, int64_t channel, int64_t place, float *nowhere,
                                tile *t) {
  const laci_sparse_item *item = w->item;
  const laci_sparse_layout *in = &w->r->from, *out = &w->r->to;
  const int64_t *from_pixel = item->from + place, *to_pixel = item->to + place;
  const int64_t *from_lanes = w->to_axis == PIXELS ? from_pixel : w->from_lanes;
  const int64_t *to_lanes = w->from_axis == PIXELS ? to_pixel : w->to_lanes;
  const float *from = w->from + channel_offset(in, item->channel + channel);
  float *to = w->to + channel_offset(out, item->channel + channel);
  if (w->from_axis == PIXELS) from += vector_offset(in, item->place + place);
  else if (w->to_axis != PIXELS) from += *from_pixel;
  if (w->to_axis == PIXELS) to += vector_offset(out, item->place + place);
  else if (w->from_axis != PIXELS) to += *to_pixel;
/* Prevents gcc from unrolling the loops, since it does not vectorize unrolled ones. */
#pragma GCC unroll 1
  for (int i = 0; i < LANES; i++) t->from[i] = from_lanes[i] < 0 ? zeros : from + from_lanes[i];
#pragma GCC unroll 1
  for (int j = 0; j < LANES; j++) t->to[j] = to_lanes[j] < 0 ? nowhere : to + to_lanes[j];
  t->n_from = count_lanes_of_item(item, w->to_axis, channel, place);
  t->n_to = count_lanes_of_item(item, w->from_axis, channel, place);
  for (int64_t i = t->n_from; i < LANES; i++) t->from[i] = zeros;
  for (int64_t j = t->n_to; j < LANES; j++) t->to[j] = nowhere;
  t->n_read = w->from_axis == IMAGES ? LANES : t->n_to;
  t->n_written = w->to_axis == IMAGES ? LANES : t->n_from;
}

/* Sets *n to the normalization of the tile that begins at a channel of the item. */
static void find_normalization_of_tile(const work *w, int64_t channel, const tile *t,
                                       tile_norm *n) {
  const laci_sparse_norm *norm = &w->r->norm;
  const int64_t first = w->item->channel + channel;
  *n = (tile_norm){.low = norm->low};
  for (int64_t j = 0; j < t->n_to; j++) {
    n->scale[j] = norm->scale[first + (w->by_channel ? 0 : j)];
    n->shift[j] = norm->shift[first + (w->by_channel ? 0 : j)];
  }
  for (int i = 0; i < LANES; i++) n->used[i] = -(t->from[i] != zeros);
}

static void transpose_partial_tile(const tile *t, const tile_norm *n) {
  float in[LANES][LANES] = {{0}}, out[LANES][LANES];
  const float *from[LANES];
  float *to[LANES];
  for (int at = 0; at < LANES; at++) {
    memcpy(in[at], t->from[at], (size_t)t->n_read * sizeof(float));
    from[at] = in[at];
    to[at] = out[at];
  }
  transpose_whole_tile(from, to, n);
  for (int at = 0; at < LANES; at++) {
    memcpy(t->to[at], out[at], (size_t)t->n_written * sizeof(float));
  }
}

/* Prefetches the tile of the next channel. If lanes are pixels in one layout and images in the
 * other, that tile is in other cache lines, too far away for the hardware prefetcher. Inlined,
 * since gcc drops calls of functions that only prefetch. */
static inline __attribute__((always_inline)) void prefetch_next_channel(const work *w,
                                                                        const tile *t,
                                                                        const float *nowhere) {
  for (int64_t i = 0; i < t->n_from; i++) {
    if (t->from[i] != zeros) __builtin_prefetch(t->from[i] + w->r->from.channel_stride);
  }
  for (int64_t j = 0; j < t->n_to; j++) {
    if (t->to[j] != nowhere) __builtin_prefetch(t->to[j] + w->r->to.channel_stride, 1);
  }
}

static void transpose_tile(const work *w, int64_t channel, int64_t place) {
  float nowhere[LANES];
  tile t;
  tile_norm norm;
  const tile_norm *n = w->r->norm.scale ? &norm : NULL;
  locate_tile_vectors(w, channel, place, nowhere, &t);
  if (n) find_normalization_of_tile(w, channel, &t, &norm);
  if (w->by_channel && channel + 1 < w->item->n_channels) prefetch_next_channel(w, &t, nowhere);
  if (t.n_read == LANES && t.n_written == LANES) transpose_whole_tile(t.from, t.to, n);
  else transpose_partial_tile(&t, n);
}

/* Transposes all tiles of an item. The inner loop runs over channels if many channels are
 * neighbours in memory, otherwise over places. */
static void transpose_item(const work *w) {
  const laci_sparse_item *item = w->item;
  const int64_t channel_step = w->by_channel ? 1 : LANES, place_step = w->by_pixel ? 1 : LANES;
  const int64_t n_channels = (item->n_channels + channel_step - 1) / channel_step;
  const int64_t n_places = (item->n_places + place_step - 1) / place_step;
  const bool places_last =
      w->r->from.format != LACI_FORMAT_HWC && w->r->to.format != LACI_FORMAT_HWC;
  const int64_t n_inner = places_last ? n_places : n_channels;
  const int64_t n_outer = places_last ? n_channels : n_places;
  for (int64_t outer = 0; outer < n_outer; outer++) {
    for (int64_t inner = 0; inner < n_inner; inner++) {
      const int64_t channel = (places_last ? outer : inner) * channel_step;
      const int64_t place = (places_last ? inner : outer) * place_step;
      if (w->by_pixel || w->to_axis == PIXELS || has_valid_offset(item->to + place)) {
        transpose_tile(w, channel, place);
      }
    }
  }
}

/* ---- Copying ---- */

static void copy_channel_vectors(const work *w) {
  const laci_sparse_item *item = w->item;
  const laci_sparse_layout *in = &w->r->from, *out = &w->r->to;
  const bool whole = in->format == LACI_FORMAT_HWC && out->format == LACI_FORMAT_HWC;
  const int64_t most = whole ? LACI_SPARSE_CHUNK : LANES, end = item->channel + item->n_channels;
  for (int64_t channel = item->channel; channel < end; channel += most) {
    const float *from = w->from + channel_offset(in, channel);
    float *to = w->to + channel_offset(out, channel);
    const int64_t n = end - channel < most ? end - channel : most;
    for (int64_t at = 0; at < item->n_places; at++) {
      memcpy(to + item->to[at], from + item->from[at], (size_t)n * sizeof(float));
    }
  }
}

/* Normalizes some channels of one pixel, each a vector of 16 images. */
static void normalize_images(const laci_sparse_norm *norm, const laci_sparse_item *item,
                             float *pixel) {
  for (int64_t channel = 0; channel < item->n_channels; channel++) {
    const float scale = norm->scale[item->channel + channel];
    const float shift = norm->shift[item->channel + channel];
    float *to = pixel + channel * LANES;
    for (int lane = 0; lane < LANES; lane += WIDTH) {
      STORE(to + lane, normalize_vector(LOAD(to + lane), scale, shift, norm->low));
    }
  }
}

static void copy_image_vectors(const work *w) {
  const laci_sparse_item *item = w->item;
  const int64_t first = item->channel * LANES, n = item->n_channels * LANES;
  for (int64_t at = 0; at < item->n_places; at++) {
    float *to = w->to + item->to[at] + first;
    memcpy(to, w->from + item->from[at] + first, (size_t)n * sizeof(float));
    if (w->r->norm.scale) normalize_images(&w->r->norm, item, to);
    for (int64_t lane = 0; lane < n; lane++) {
      if (lane % LANES >= item->n_images) to[lane] = 0;
    }
  }
}

/* Some lanes of a vector of places, whose pixels are close to each other in the source. A used lane
 * has the pixel at[index[lane]]. The index of any other lane is that of a float whose value does
 * not matter. */
typedef struct nearby_lanes {
  int64_t at;
  int32_t used[WIDTH], index[WIDTH]; /* used[lane]: -1 if the lane is used, else 0. index[lane]:
                                        offset of its pixel from `at` */
} nearby_lanes;

/* `left` has a bit for each lane. Sets *found to those of these lanes whose pixels are at most
 * WIDTH - 1 floats after the pixel of the first one. Returns the other lanes of `left`. */
static uint32_t find_nearby_lanes(const int64_t *pixel, uint32_t left, nearby_lanes *found) {
  *found = (nearby_lanes){.at = pixel[__builtin_ctz(left)]};
  uint32_t lanes = 0;
  for (int lane = 0; lane < WIDTH; lane++) {
    const int64_t index = pixel[lane] - found->at;
    if (!(left >> lane & 1) || index < 0 || index >= WIDTH) continue;
    found->index[lane] = (int32_t)index;
    found->used[index] = -1;
    lanes |= 1U << lane;
  }
  int32_t unused = 0;
  while (unused < WIDTH - 1 && found->used[unused]) unused++;
  for (int lane = 0; lane < WIDTH; lane++) {
    if (!(lanes >> lane & 1)) found->index[lane] = unused;
  }
  return left & ~lanes;
}

static int find_all_nearby_lanes(const int64_t *pixel, nearby_lanes *groups) {
  int n = 0;
  uint32_t left = 0;
  for (int lane = 0; lane < WIDTH; lane++) left |= (uint32_t)(pixel[lane] >= 0) << lane;
  while (left) left = find_nearby_lanes(pixel, left, &groups[n++]);
  return n;
}

/* One vector of places, for some channels. */
typedef struct strip {
  const float *from;
  float *to;
  int64_t from_step, to_step; /* number of floats from one channel to the next, in source and
                                 target */
  int64_t n_channels, n_places;
  laci_sparse_norm norm; /* normalization of these channels */
  const int32_t *used;   /* [WIDTH] -1 if the place is a pixel, 0 if it is padding */
} strip;

static inline vector normalize_place_values(const strip *s, int64_t channel, vector x) {
  const laci_sparse_norm *n = &s->norm;
  if (!n->scale) return x;
  return zero_unused_lanes(normalize_vector(x, n->scale[channel], n->shift[channel], n->low),
                           s->used);
}

enum { FEW = 8 };

/* Copies n groups of lanes whose pixels are near each other, at most FEW. n is a constant where
 * this is inlined, so that masks and indices stay in registers. */
static inline __attribute__((always_inline)) void copy_few_groups(const strip *s,
                                                                  const nearby_lanes *groups,
                                                                  const int n) {
  const float *from[FEW];
  mask used[FEW];
  order index[FEW];
  for (int at = 0; at < n; at++) {
    from[at] = s->from + groups[at].at;
    used[at] = MASK_OF(groups[at].used);
    index[at] = ORDER_OF(groups[at].index);
  }
  for (int64_t channel = 0; channel < s->n_channels; channel++) {
    vector v = NOTHING();
#pragma GCC unroll 8
    for (int at = 0; at < n; at++) {
      v = gather_nearby_lanes(v, from[at] + channel * s->from_step, used[at], index[at]);
    }
    STORE(s->to + channel * s->to_step, normalize_place_values(s, channel, v));
  }
}

/* Copies any number of groups of lanes whose pixels are near each other. */
static void copy_groups_of_nearby_lanes(const strip *s, const nearby_lanes *groups, int n) {
  for (int64_t channel = 0; channel < s->n_channels; channel++) {
    const float *from = s->from + channel * s->from_step;
    float lanes[WIDTH];
    vector v = NOTHING();
    for (int at = 0; at < n; at++) {
      const nearby_lanes *group = &groups[at];
      v = gather_nearby_lanes(v, from + group->at, MASK_OF(group->used), ORDER_OF(group->index));
    }
    STORE(lanes, normalize_place_values(s, channel, v));
    memcpy(s->to + channel * s->to_step, lanes, (size_t)s->n_places * sizeof(float));
  }
}

static void copy_place_vector(const strip *s, const nearby_lanes *groups, int n) {
  switch (s->n_places == WIDTH ? n : FEW + 1) {
    case 0: copy_few_groups(s, groups, 0); break;
    case 1: copy_few_groups(s, groups, 1); break;
    case 2: copy_few_groups(s, groups, 2); break;
    case 3: copy_few_groups(s, groups, 3); break;
    case 4: copy_few_groups(s, groups, 4); break;
    case 5: copy_few_groups(s, groups, 5); break;
    case 6: copy_few_groups(s, groups, 6); break;
    case 7: copy_few_groups(s, groups, 7); break;
    case FEW: copy_few_groups(s, groups, FEW); break;
    default: copy_groups_of_nearby_lanes(s, groups, n);
  }
}

/* Returns the normalization for the channels from `channel` on. */
static laci_sparse_norm normalization_from_channel(const laci_sparse_norm *n, int64_t channel) {
  return (laci_sparse_norm){n->scale + channel, n->shift + channel, n->low};
}

/* Copies an item by groups of lanes whose pixels are near each other, 16 channels at a time. In
 * PC16P such channels are neighbours in memory, and in CHW they are few enough streams. */
static void copy_nearby_pixels(const work *w) {
  const laci_sparse_item *item = w->item;
  const laci_sparse_layout *in = &w->r->from, *out = &w->r->to;
  strip s = {.from_step = in->channel_stride, .to_step = out->channel_stride};
  nearby_lanes groups[LACI_SPARSE_CHUNK];
  int n[LACI_SPARSE_CHUNK / WIDTH];
  int32_t used[LACI_SPARSE_CHUNK];
  for (int at = 0; at < LACI_SPARSE_CHUNK; at++) used[at] = -(item->from[at] >= 0);
  for (int64_t at = 0; at < item->n_places; at += WIDTH) {
    n[at / WIDTH] = find_all_nearby_lanes(item->from + at, &groups[at]);
  }
  for (int64_t channel = 0; channel < item->n_channels; channel += LANES) {
    const int64_t left = item->n_channels - channel;
    s.from = w->from + channel_offset(in, item->channel + channel);
    s.n_channels = left < LANES ? left : LANES;
    if (w->r->norm.scale) s.norm = normalization_from_channel(&w->r->norm, item->channel + channel);
    for (int64_t at = 0; at < item->n_places; at += WIDTH) {
      const int64_t in_vector = at % LANES, rest = item->n_places - at;
      s.to = w->to + channel_offset(out, item->channel + channel) + in_vector +
             vector_offset(out, item->place + at - in_vector);
      s.n_places = rest < WIDTH ? rest : WIDTH;
      s.used = used + at;
      copy_place_vector(&s, &groups[at], n[at / WIDTH]);
    }
  }
}

/* ---- All layouts ---- */

void LACI_VARIANT(laci_sparse_reorder)(const laci_sparse_reorder *r, const float *from, float *to,
                                       int64_t first, int64_t last) {
  laci_sparse_item item;
  work w = {
      .r = r, .item = &item, .from_axis = vector_axis(&r->from), .to_axis = vector_axis(&r->to)};
  w.by_channel = w.from_axis != CHANNELS && w.to_axis != CHANNELS;
  w.by_pixel = w.from_axis != PIXELS && w.to_axis != PIXELS;
  for (int lane = 0; lane < LANES; lane++) {
    w.from_lanes[lane] = lane * (w.to_axis == IMAGES ? r->from.n_floats : r->from.channel_stride);
    w.to_lanes[lane] = lane * (w.from_axis == IMAGES ? r->to.n_floats : r->to.channel_stride);
  }
  for (int64_t index = first; index < last; index++) {
    laci_sparse_describe_item(r, index, &item);
    w.from = from + image_offset(&r->from, item.image);
    w.to = to + image_offset(&r->to, item.image);
    if (w.from_axis != w.to_axis) transpose_item(&w);
    else if (w.from_axis == CHANNELS) copy_channel_vectors(&w);
    else if (w.from_axis == IMAGES) copy_image_vectors(&w);
    else copy_nearby_pixels(&w);
  }
  if (laci_sparse_lanes_are_pixels(&r->to))
    return; /* the vectors of CHW and PC16P contain all padding, which is written already */
  const int64_t n = laci_sparse_reorder_n_items(r);
  const int64_t n_border = laci_sparse_border_n_items(&r->to, &r->size);
  laci_sparse_fill_border(&r->to, &r->size, 0, to, n_border * first / n, n_border * last / n);
}
