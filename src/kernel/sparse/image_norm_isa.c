/* SPDX-License-Identifier: Apache-2.0
 * image_norm.h for every instruction set: the build compiles this once for each (variants.h). All
 * of it waits for memory: channels are read in the order in which they lie, and sums stay in the
 * first cache. */
#include "kernel/sparse/image_norm.h"

#include <string.h>

#if defined(__AVX512F__)
enum { WIDTH = 16 };
#elif defined(__AVX2__)
enum { WIDTH = 8 };
#else
enum { WIDTH = 4 };
#endif
enum { LANES = 16, MOST = LACI_IMAGE_NORM_CHANNELS * LANES };
enum { TOGETHER = 4 }; /* pixels that are added to sums which lie in the first cache */

#define INLINE static inline __attribute__((always_inline))

typedef float vector __attribute__((vector_size(4 * WIDTH)));
typedef int32_t truth __attribute__((vector_size(4 * WIDTH)));

INLINE vector load(const float *from) {
  vector v;
  memcpy(&v, from, sizeof v);
  return v;
}

INLINE void store(float *to, vector v) { memcpy(to, &v, sizeof v); }

INLINE vector keep(vector v, truth where) { return (vector)((truth)v & where); }

INLINE vector bound(vector v) { return keep(v, ~(v <= 0)); }

/** Lanes together, halves first. */
static float together(float *lanes) {
  for (int half = LANES / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; lane++) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

/* ---- Forward ---- */

/** Of each channel the sums around `near`, then the sums of squares around it, lane by lane; of n
 * pixels, one after the other. */
INLINE void add_pixels(const float *from, int64_t stride, int64_t n_channels, const float *near,
                       float *both, const int n) {
  for (int64_t c = 0; c < n_channels; c++, from += LANES, both += 2 * LANES) {
    for (int at = 0; at < LANES; at += WIDTH) {
      vector level = load(both + at), slope = load(both + LANES + at);
      for (int pixel = 0; pixel < n; pixel++) {
        const vector off = load(from + pixel * stride + at) - near[c];
        level += off;
        slope += off * off;
      }
      store(both + at, level);
      store(both + LANES + at, slope);
    }
  }
}

static void add_up(const laci_norm_tile *t, laci_norm_from x, const float *near, float *both) {
  for (int64_t row = 0; row < t->n_rows; row++) {
    const float *from = x.at + row * x.row_stride;
    int64_t left = t->n_pixels;
    for (; left >= TOGETHER; left -= TOGETHER, from += TOGETHER * t->pixel_stride) {
      add_pixels(from, t->pixel_stride, t->n_channels, near, both, TOGETHER);
    }
    for (; left > 0; left--, from += t->pixel_stride) {
      add_pixels(from, t->pixel_stride, t->n_channels, near, both, 1);
    }
  }
}

/** Around the mean of the pixel in the middle, which is near that of the tile: one pass, and
 * nothing large is taken from something large. */
static void moments(const laci_norm_tile *t, laci_norm_from x, float *mean, float *squares) {
  const float n = (float)(t->n_rows * t->n_pixels * LANES);
  const float *middle = x.at + t->n_rows / 2 * x.row_stride + t->n_pixels / 2 * t->pixel_stride;
  float both[2 * MOST], near[LACI_IMAGE_NORM_CHANNELS];
  memcpy(both, middle, (size_t)(t->n_channels * LANES) * sizeof *both);
  for (int64_t c = 0; c < t->n_channels; c++) near[c] = together(both + c * LANES) / LANES;
  memset(both, 0, (size_t)(t->n_channels * 2 * LANES) * sizeof *both);
  add_up(t, x, near, both);
  for (int64_t c = 0; c < t->n_channels; c++) {
    float *lanes = both + c * 2 * LANES;
    const float level = together(lanes), slope = together(lanes + LANES);
    const float squared = slope - level * (level / n);
    mean[c] = near[c] + level / n;
    squares[c] = squared < 0 ? 0 : squared;
  }
}

INLINE void apply_rows(const laci_norm_tile *t, const laci_norm_scales *s, laci_norm_from x,
                       laci_norm_to y, const bool relu) {
  const float *mean = s->mean, *scale = s->scale, *shift = s->shift;
  for (int64_t row = 0; row < t->n_rows; row++) {
    const float *from = x.at + row * x.row_stride;
    float *to = y.at + row * y.row_stride;
    for (int64_t pixel = 0; pixel < t->n_pixels; pixel++) {
      for (int64_t c = 0; c < t->n_channels; c++) {
        for (int at = 0; at < LANES; at += WIDTH) {
          const vector v = (load(from + c * LANES + at) - mean[c]) * scale[c] + shift[c];
          store(to + c * LANES + at, relu ? bound(v) : v);
        }
      }
      from += t->pixel_stride;
      to += t->pixel_stride;
    }
  }
}

static void apply(const laci_norm_tile *t, const laci_norm_scales *s, laci_norm_from x,
                  laci_norm_to y) {
  if (s->relu) apply_rows(t, s, x, y, true);
  else apply_rows(t, s, x, y, false);
}

/* ---- Backward ---- */

/** What comes back behind the Relu; off: x around its mean. */
INLINE vector let_through(vector off, float scale, float shift, vector dy, const bool relu) {
  return relu ? keep(dy, off * scale + shift > 0) : dy;
}

/** What goes back reads both. */
typedef struct both_ends {
  laci_norm_from x, dy;
} both_ends;

INLINE void sums_of_pixels(const laci_norm_tile *t, const laci_norm_scales *s,
                           const both_ends *ends, float *both, const bool relu, const int n) {
  const float *mean = s->mean, *scale = s->scale, *shift = s->shift;
  const float *from = ends->x.at, *back = ends->dy.at;
  for (int64_t c = 0; c < t->n_channels; c++, from += LANES, back += LANES, both += 2 * LANES) {
    for (int at = 0; at < LANES; at += WIDTH) {
      vector level = load(both + at), slope = load(both + LANES + at);
      for (int pixel = 0; pixel < n; pixel++) {
        const vector off = load(from + pixel * t->pixel_stride + at) - mean[c];
        const vector dy = load(back + pixel * t->pixel_stride + at);
        const vector m = let_through(off, scale[c], shift[c], dy, relu);
        level += m;
        slope += m * off;
      }
      store(both + at, level);
      store(both + LANES + at, slope);
    }
  }
}

INLINE void sums_of_rows(const laci_norm_tile *t, const laci_norm_scales *s, both_ends ends,
                         float *both, const bool relu) {
  for (int64_t row = 0; row < t->n_rows; row++) {
    both_ends at = ends;
    int64_t left = t->n_pixels;
    for (; left >= TOGETHER; left -= TOGETHER) {
      sums_of_pixels(t, s, &at, both, relu, TOGETHER);
      at.x.at += TOGETHER * t->pixel_stride;
      at.dy.at += TOGETHER * t->pixel_stride;
    }
    for (; left > 0; left--) {
      sums_of_pixels(t, s, &at, both, relu, 1);
      at.x.at += t->pixel_stride;
      at.dy.at += t->pixel_stride;
    }
    ends.x.at += ends.x.row_stride;
    ends.dy.at += ends.dy.row_stride;
  }
}

static void sums_of(const laci_norm_tile *t, const laci_norm_scales *s, laci_norm_from x,
                    laci_norm_from dy, float *const sums[2]) {
  float both[2 * MOST];
  memset(both, 0, (size_t)(t->n_channels * 2 * LANES) * sizeof *both);
  if (s->relu) sums_of_rows(t, s, (both_ends){x, dy}, both, true);
  else sums_of_rows(t, s, (both_ends){x, dy}, both, false);
  for (int64_t c = 0; c < t->n_channels; c++) {
    sums[0][c] = together(both + c * 2 * LANES);
    sums[1][c] = together(both + c * 2 * LANES + LANES);
  }
}

INLINE void gradient_rows(const laci_norm_tile *t, const laci_norm_scales *s,
                          const laci_norm_slopes *off, both_ends ends, laci_norm_to dx,
                          const bool relu) {
  const float *mean = s->mean, *scale = s->scale, *shift = s->shift;
  const float *level = off->level, *slope = off->slope;
  for (int64_t row = 0; row < t->n_rows; row++) {
    const float *from = ends.x.at + row * ends.x.row_stride,
                *back = ends.dy.at + row * ends.dy.row_stride;
    float *to = dx.at + row * dx.row_stride;
    for (int64_t pixel = 0; pixel < t->n_pixels; pixel++) {
      for (int64_t c = 0; c < t->n_channels; c++) {
        for (int at = 0; at < LANES; at += WIDTH) {
          const vector around = load(from + c * LANES + at) - mean[c];
          const vector m =
              let_through(around, scale[c], shift[c], load(back + c * LANES + at), relu);
          store(to + c * LANES + at, (m - level[c] - around * slope[c]) * scale[c]);
        }
      }
      from += t->pixel_stride;
      back += t->pixel_stride;
      to += t->pixel_stride;
    }
  }
}

static void gradient(const laci_norm_tile *t, const laci_norm_scales *s,
                     const laci_norm_slopes *off, laci_norm_from x, laci_norm_from dy,
                     laci_norm_to dx) {
  if (s->relu) gradient_rows(t, s, off, (both_ends){x, dy}, dx, true);
  else gradient_rows(t, s, off, (both_ends){x, dy}, dx, false);
}

/* ---- Sums ---- */

static void add(const float *a, const float *b, bool relu, int64_t n, float *to) {
  int64_t i = 0;
  for (; i + WIDTH <= n; i += WIDTH) {
    const vector v = load(a + i) + load(b + i);
    store(to + i, relu ? bound(v) : v);
  }
  for (; i < n; i++) {
    const float v = a[i] + b[i];
    to[i] = relu && v <= 0 ? 0 : v;
  }
}

const laci_image_norm LACI_VARIANT(laci_image_norm) = {moments, apply, sums_of, gradient, add};
