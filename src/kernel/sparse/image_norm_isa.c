/* SPDX-License-Identifier: Apache-2.0
 * Batch normalization of image_norm.h: the build compiles this source once for each instruction set
 * (variants.h). The speed of memory limits all functions. So channels are read in the order in
 * which they are stored, and sums stay in the first-level cache. Floats and bf16 share this code:
 * per_place is the number of channels in four bytes, a constant wherever code is inlined. */
#include "kernel/sparse/image_norm.h"
#include "kernel/variants.h"

#include <stddef.h>
#include <string.h>

#if defined(__AVX512F__)
enum { WIDTH = 16 };
#elif defined(__AVX2__)
enum { WIDTH = 8 };
#else
enum { WIDTH = 4 };
#endif
enum { LANES = 16, MOST_EACH = 2, MOST = LACI_IMAGE_NORM_CHANNELS * LANES };
enum { TOGETHER = 4 }; /* number of pixels that are added to the sums at once */

#define INLINE static inline __attribute__((always_inline))

typedef float vector __attribute__((vector_size(4 * WIDTH)));
typedef int32_t truth __attribute__((vector_size(4 * WIDTH)));
typedef uint32_t words __attribute__((vector_size(4 * WIDTH)));

INLINE vector load(const float *from) {
  vector v;
  memcpy(&v, from, sizeof v);
  return v;
}

INLINE void store(float *to, vector v) { memcpy(to, &v, sizeof v); }

INLINE vector keep_lanes_or_zero(vector v, truth where) { return (vector)((truth)v & where); }

INLINE vector relu_of(vector v) { return keep_lanes_or_zero(v, ~(v <= 0)); }

/* ---- Places ---- */

/** The one or two channels that share four bytes, for some lanes. */
typedef struct place {
  vector channel[MOST_EACH];
} place;

INLINE place load_channels_as_floats(const float *from, const int per_place) {
  place p;
  p.channel[0] = load(from);
  if (per_place > 1) {
    const words pairs = (words)p.channel[0];
    p.channel[0] = (vector)(pairs << 16);
    p.channel[1] = (vector)(pairs & 0xFFFF0000U);
  }
  return p;
}

/** Rounds each lane to the nearest bf16, ties to even, which is the upper half of the result. A NaN
 * stays a NaN. */
INLINE words round_to_bf16(vector v) {
  const words bits = (words)v, nan = (words)(v != v);
  return ((bits + 0x7FFFU + (bits >> 16 & 1U)) & ~nan) | ((bits | 0x400000U) & nan);
}

INLINE void store_channels_from_floats(float *to, place p, const int per_place) {
  if (per_place > 1) {
    const words low = round_to_bf16(p.channel[0]) >> 16;
    p.channel[0] = (vector)(low | (round_to_bf16(p.channel[1]) & 0xFFFF0000U));
  }
  store(to, p.channel[0]);
}

/** Returns the sum of 16 lanes. Each step adds the upper half of the lanes to the lower half. */
static float sum_lanes(float *lanes) {
  for (int half = LANES / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; lane++) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

/** Two sums of a channel, in each lane: those that laci_image_norm.sums computes. */
typedef struct sums {
  vector of_values, of_products;
} sums;

INLINE sums load_sums(const float *both) { return (sums){load(both), load(both + LANES)}; }

INLINE void store_sums(float *both, sums s) {
  store(both, s.of_values);
  store(both + LANES, s.of_products);
}

/* ---- Forward ---- */

/** Adds n pixels, one after the other, to the sums in `both`. For each channel and lane, the first
 * is the sum of x - center[channel], the second that of the squares of that difference. per_place:
 * number of channels in four bytes, 1 or 2. */
INLINE void add_pixels_to_sums(const laci_norm_tile *t, const float *from, const float *center,
                               float *both, const int n, const int per_place) {
  for (int64_t at = 0; at < t->n_places; at++, from += LANES, center += per_place) {
    for (int lane = 0; lane < LANES; lane += WIDTH) {
      sums s[MOST_EACH];
      for (int c = 0; c < per_place; c++) s[c] = load_sums(both + (ptrdiff_t)c * 2 * LANES + lane);
      for (int pixel = 0; pixel < n; pixel++) {
        const place x = load_channels_as_floats(from + pixel * t->pixel_stride + lane, per_place);
        for (int c = 0; c < per_place; c++) {
          const vector off = x.channel[c] - center[c];
          s[c].of_values += off;
          s[c].of_products += off * off;
        }
      }
      for (int c = 0; c < per_place; c++) store_sums(both + (ptrdiff_t)c * 2 * LANES + lane, s[c]);
    }
    both += (ptrdiff_t)per_place * 2 * LANES;
  }
}

INLINE void add_pixel_rows_to_sums(const laci_norm_tile *t, laci_norm_source x, const float *center,
                                   float *both, const int per_place) {
  for (int64_t row = 0; row < t->n_rows; row++) {
    const float *from = x.at + row * x.row_stride;
    int64_t left = t->n_pixels;
    for (; left >= TOGETHER; left -= TOGETHER, from += TOGETHER * t->pixel_stride) {
      add_pixels_to_sums(t, from, center, both, TOGETHER, per_place);
    }
    for (; left > 0; left--, from += t->pixel_stride)
      add_pixels_to_sums(t, from, center, both, 1, per_place);
  }
}

/** Computes center[c] for each channel c of one pixel: the mean over the 16 images. */
INLINE void find_pixel_means(const laci_norm_tile *t, const float *from, float *center,
                             const int per_place) {
  for (int64_t at = 0; at < t->n_places; at++, from += LANES, center += per_place) {
    float lanes[MOST_EACH][LANES];
    for (int lane = 0; lane < LANES; lane += WIDTH) {
      const place x = load_channels_as_floats(from + lane, per_place);
      for (int c = 0; c < per_place; c++) store(lanes[c] + lane, x.channel[c]);
    }
    for (int c = 0; c < per_place; c++) center[c] = sum_lanes(lanes[c]) / LANES;
  }
}

/** Computes mean and squares as laci_image_norm.moments. Sums are relative to the mean of the
 * middle pixel, which is near the tile's mean. That takes one pass and avoids cancellation. */
INLINE void find_moments(const laci_norm_tile *t, laci_norm_source x, float *mean, float *squares,
                         const int per_place) {
  const float n = (float)(t->n_rows * t->n_pixels * LANES);
  float both[2 * MOST], center[LACI_IMAGE_NORM_CHANNELS];
  find_pixel_means(t, x.at + t->n_rows / 2 * x.row_stride + t->n_pixels / 2 * t->pixel_stride,
                   center, per_place);
  memset(both, 0, (size_t)(t->n_places * per_place * 2 * LANES) * sizeof *both);
  add_pixel_rows_to_sums(t, x, center, both, per_place);
  for (int64_t c = 0; c < t->n_places * per_place; c++) {
    float *lanes = both + c * 2 * LANES;
    const float level = sum_lanes(lanes), slope = sum_lanes(lanes + LANES);
    const float squared = slope - level * (level / n);
    mean[c] = center[c] + level / n;
    squares[c] = squared < 0 ? 0 : squared;
  }
}

/** Constants with which functions are inlined. relu: a Relu follows. per_place: number of channels
 * in four bytes. n: number of pixels at a time. */
typedef struct shape {
  bool relu;
  int per_place, n;
} shape;

/** Normalizes all channels of a pixel. */
INLINE void normalize_pixel(const laci_norm_scales *s, int64_t n_places, const float *from,
                            float *to, const shape is) {
  const float *mean = s->mean, *scale = s->scale, *shift = s->shift;
  for (int64_t at = 0, first = 0; at < n_places * LANES; at += LANES, first += is.per_place) {
    for (int lane = 0; lane < LANES; lane += WIDTH) {
      place v = load_channels_as_floats(from + at + lane, is.per_place);
      for (int c = 0; c < is.per_place; c++) {
        const int64_t channel = first + c;
        const vector y = (v.channel[c] - mean[channel]) * scale[channel] + shift[channel];
        v.channel[c] = is.relu ? relu_of(y) : y;
      }
      store_channels_from_floats(to + at + lane, v, is.per_place);
    }
  }
}

INLINE void normalize_rows(const laci_norm_tile *t, const laci_norm_scales *s, laci_norm_source x,
                           laci_norm_target y, const shape is) {
  for (int64_t row = 0; row < t->n_rows; row++) {
    const float *from = x.at + row * x.row_stride;
    float *to = y.at + row * y.row_stride;
    for (int64_t pixel = 0; pixel < t->n_pixels; pixel++) {
      normalize_pixel(s, t->n_places, from, to, is);
      from += t->pixel_stride;
      to += t->pixel_stride;
    }
  }
}

INLINE void normalize_tile(const laci_norm_tile *t, const laci_norm_scales *s, laci_norm_source x,
                           laci_norm_target y, const int per_place) {
  if (s->relu) normalize_rows(t, s, x, y, (shape){true, per_place, 1});
  else normalize_rows(t, s, x, y, (shape){false, per_place, 1});
}

/* ---- Backward ---- */

/** Returns the gradient with respect to the Relu's input; without a Relu, dy. off: x minus its
 * mean. */
INLINE vector gradient_before_relu(vector off, float scale, float shift, vector dy,
                                   const bool relu) {
  return relu ? keep_lanes_or_zero(dy, off * scale + shift > 0) : dy;
}

/** The operands of the backward functions. */
typedef struct backward_operands {
  laci_norm_source x, dy;
} backward_operands;

INLINE void add_gradient_sums_of_pixels(const laci_norm_tile *t, const laci_norm_scales *s,
                                        const backward_operands *ends, float *both,
                                        const shape is) {
  const float *mean = s->mean, *scale = s->scale, *shift = s->shift;
  const float *from = ends->x.at, *back = ends->dy.at;
  for (int64_t at = 0; at < t->n_places; at++, from += LANES, back += LANES) {
    for (int lane = 0; lane < LANES; lane += WIDTH) {
      sums sum[MOST_EACH];
      for (int c = 0; c < is.per_place; c++)
        sum[c] = load_sums(both + (ptrdiff_t)c * 2 * LANES + lane);
      for (int pixel = 0; pixel < is.n; pixel++) {
        const place x =
            load_channels_as_floats(from + pixel * t->pixel_stride + lane, is.per_place);
        const place dy =
            load_channels_as_floats(back + pixel * t->pixel_stride + lane, is.per_place);
        for (int c = 0; c < is.per_place; c++) {
          const vector off = x.channel[c] - mean[c];
          const vector m = gradient_before_relu(off, scale[c], shift[c], dy.channel[c], is.relu);
          sum[c].of_values += m;
          sum[c].of_products += m * off;
        }
      }
      for (int c = 0; c < is.per_place; c++) {
        store_sums(both + (ptrdiff_t)c * 2 * LANES + lane, sum[c]);
      }
    }
    both += (ptrdiff_t)is.per_place * 2 * LANES;
    mean += is.per_place;
    scale += is.per_place;
    shift += is.per_place;
  }
}

INLINE void add_gradient_sums_of_rows(const laci_norm_tile *t, const laci_norm_scales *s,
                                      backward_operands ends, float *both, const bool relu,
                                      const int per_place) {
  for (int64_t row = 0; row < t->n_rows; row++) {
    backward_operands at = ends;
    int64_t left = t->n_pixels;
    for (; left >= TOGETHER; left -= TOGETHER) {
      add_gradient_sums_of_pixels(t, s, &at, both, (shape){relu, per_place, TOGETHER});
      at.x.at += TOGETHER * t->pixel_stride;
      at.dy.at += TOGETHER * t->pixel_stride;
    }
    for (; left > 0; left--) {
      add_gradient_sums_of_pixels(t, s, &at, both, (shape){relu, per_place, 1});
      at.x.at += t->pixel_stride;
      at.dy.at += t->pixel_stride;
    }
    ends.x.at += ends.x.row_stride;
    ends.dy.at += ends.dy.row_stride;
  }
}

INLINE void find_gradient_sums(const laci_norm_tile *t, const laci_norm_scales *s,
                               backward_operands ends, float *const to[2], const int per_place) {
  float both[2 * MOST];
  memset(both, 0, (size_t)(t->n_places * per_place * 2 * LANES) * sizeof *both);
  if (s->relu) add_gradient_sums_of_rows(t, s, ends, both, true, per_place);
  else add_gradient_sums_of_rows(t, s, ends, both, false, per_place);
  for (int64_t c = 0; c < t->n_places * per_place; c++) {
    to[0][c] = sum_lanes(both + c * 2 * LANES);
    to[1][c] = sum_lanes(both + c * 2 * LANES + LANES);
  }
}

/** The parameters of the gradient dx of some channels. */
typedef struct gradient_of {
  const laci_norm_scales *s;
  const laci_norm_slopes *off;
} gradient_of;

/** Computes dx of all channels of a pixel. */
INLINE void compute_pixel_gradient(const gradient_of *g, int64_t n_places, const float *from,
                                   const float *back, float *to, const shape is) {
  const float *mean = g->s->mean, *scale = g->s->scale, *shift = g->s->shift;
  const float *level = g->off->offset, *slope = g->off->slope;
  for (int64_t at = 0, first = 0; at < n_places * LANES; at += LANES, first += is.per_place) {
    for (int lane = 0; lane < LANES; lane += WIDTH) {
      const place x = load_channels_as_floats(from + at + lane, is.per_place);
      place dy = load_channels_as_floats(back + at + lane, is.per_place);
      for (int c = 0; c < is.per_place; c++) {
        const int64_t channel = first + c;
        const vector around = x.channel[c] - mean[channel];
        const vector m =
            gradient_before_relu(around, scale[channel], shift[channel], dy.channel[c], is.relu);
        dy.channel[c] = (m - level[channel] - around * slope[channel]) * scale[channel];
      }
      store_channels_from_floats(to + at + lane, dy, is.per_place);
    }
  }
}

INLINE void compute_row_gradients(const laci_norm_tile *t, const gradient_of *g,
                                  backward_operands ends, laci_norm_target dx, const shape is) {
  for (int64_t row = 0; row < t->n_rows; row++) {
    const float *from = ends.x.at + row * ends.x.row_stride,
                *back = ends.dy.at + row * ends.dy.row_stride;
    float *to = dx.at + row * dx.row_stride;
    for (int64_t pixel = 0; pixel < t->n_pixels; pixel++) {
      compute_pixel_gradient(g, t->n_places, from, back, to, is);
      from += t->pixel_stride;
      back += t->pixel_stride;
      to += t->pixel_stride;
    }
  }
}

INLINE void compute_tile_gradient(const laci_norm_tile *t, const gradient_of *g,
                                  backward_operands ends, laci_norm_target dx,
                                  const int per_place) {
  if (g->s->relu) compute_row_gradients(t, g, ends, dx, (shape){true, per_place, 1});
  else compute_row_gradients(t, g, ends, dx, (shape){false, per_place, 1});
}

/* ---- Sums ---- */

INLINE void add_vectors_with_relu(const float *a, const float *b, float *to, int64_t n,
                                  const shape is) {
  for (int64_t i = 0; i < n; i += WIDTH) {
    place v = load_channels_as_floats(a + i, is.per_place);
    const place w = load_channels_as_floats(b + i, is.per_place);
    for (int c = 0; c < is.per_place; c++) {
      const vector sum = v.channel[c] + w.channel[c];
      v.channel[c] = is.relu ? relu_of(sum) : sum;
    }
    store_channels_from_floats(to + i, v, is.per_place);
  }
}

INLINE void add_with_optional_relu(const float *a, const float *b, float *to, int64_t n, bool relu,
                                   const int per_place) {
  if (relu) add_vectors_with_relu(a, b, to, n, (shape){true, per_place, 1});
  else add_vectors_with_relu(a, b, to, n, (shape){false, per_place, 1});
}

/** Computes laci_image_norm.add. The elements after the last whole vector go through a vector on
 * the stack. */
INLINE void add_elements(const float *a, const float *b, float *to, int64_t n, bool relu,
                         const int per_place) {
  const int64_t whole = n / WIDTH * WIDTH, rest = n - whole;
  float last[3][WIDTH] = {{0}};
  add_with_optional_relu(a, b, to, whole, relu, per_place);
  if (rest == 0) return;
  memcpy(last[0], a + whole, (size_t)rest * sizeof *a);
  memcpy(last[1], b + whole, (size_t)rest * sizeof *b);
  add_with_optional_relu(last[0], last[1], last[2], WIDTH, relu, per_place);
  memcpy(to + whole, last[2], (size_t)rest * sizeof *to);
}

/* ---- Floats, and bf16 ---- */

#define FUNCTIONS(name, per_place)                                                                 \
  static void moments_of_##name(const laci_norm_tile *t, laci_norm_source x, float *mean,          \
                                float *squares) {                                                  \
    find_moments(t, x, mean, squares, per_place);                                                  \
  }                                                                                                \
  static void apply_##name(const laci_norm_tile *t, const laci_norm_scales *s, laci_norm_source x, \
                           laci_norm_target y) {                                                   \
    normalize_tile(t, s, x, y, per_place);                                                         \
  }                                                                                                \
  static void sums_of_##name(const laci_norm_tile *t, const laci_norm_scales *s,                   \
                             laci_norm_source x, laci_norm_source dy, float *const to[2]) {        \
    find_gradient_sums(t, s, (backward_operands){x, dy}, to, per_place);                           \
  }                                                                                                \
  static void gradient_##name(const laci_norm_tile *t, const laci_norm_scales *s,                  \
                              const laci_norm_slopes *off, laci_norm_source x,                     \
                              laci_norm_source dy, laci_norm_target dx) {                          \
    compute_tile_gradient(t, &(gradient_of){s, off}, (backward_operands){x, dy}, dx, per_place);   \
  }                                                                                                \
  static void add_##name(const float *a, const float *b, bool relu, int64_t n, float *to) {        \
    add_elements(a, b, to, n, relu, per_place);                                                    \
  }

FUNCTIONS(floats, 1)
FUNCTIONS(pairs, 2)

const laci_image_norm LACI_VARIANT(laci_image_norm) = {moments_of_floats, apply_floats,
                                                       sums_of_floats, gradient_floats, add_floats};
const laci_image_norm LACI_VARIANT(laci_image_norm_bf16) = {
    moments_of_pairs, apply_pairs, sums_of_pairs, gradient_pairs, add_pairs};
