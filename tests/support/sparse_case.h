/* SPDX-License-Identifier: Apache-2.0
 * A convolution with a sparse weight: its operands, with guard bytes around them, and its result
 * computed in double, which every implementation of sparse products is compared with. */
#ifndef TESTS_SUPPORT_SPARSE_CASE_H
#define TESTS_SUPPORT_SPARSE_CASE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "kernel/pointwise/function.h"
#include "kernel/sparse/bf16_pairs.h"
#include "kernel/sparse/int8x4.h"
#include "kernel/sparse/window.h"

enum { SPARSE_GUARD_FLOATS = 64 };

typedef struct sparse_case {
  const char *what;
  laci_sparse_window window;
  laci_memory_format format, format_out;
  int64_t n_images; /* number of images, or of groups of 16 images */
  int keep;         /* kept channels of every 4: 0 to 4; 5: any number */
} sparse_case;

/** The operands of a case. A CHW result has the border of zeros that a following 3x3 convolution
 * would read. */
typedef struct sparse_operands {
  laci_sparse_convolution convolution;
  uint8_t *kept;
  float *dense, *bias;
  int32_t *whole_bias; /* the bias of an int8 case; the operands of int8 below are in `quantized`,
                          which points to them */
  float *scale, *rest;
  laci_sparse_quantized quantized;
  float *x, *residual, *y; /* point into the blocks below, some floats after their beginnings
                              (guards) */
  float *memory_x, *memory_residual, *memory_y;
  int64_t n_x, n_y;
} sparse_operands;

#define SPARSE_WINDOW(c, k, g, height, width, kh, kw, sh, sw, dh, dw, top, left, bottom, right)   \
  {                                                                                               \
    .channels_in = (c), .channels_out = (k), .groups = (g), .h = (height), .w = (width),          \
    .out_h = ((height) + (top) + (bottom) - ((kh)-1) * (dh)-1) / (sh) + 1,                        \
    .out_w = ((width) + (left) + (right) - ((kw)-1) * (dw)-1) / (sw) + 1, .kernel_h = (kh),       \
    .kernel_w = (kw), .stride_h = (sh), .stride_w = (sw), .dilation_h = (dh), .dilation_w = (dw), \
    .pad_top = (top), .pad_left = (left)                                                          \
  }
#define PIXELS LACI_FORMAT_CHW, LACI_FORMAT_CHW
#define PIXEL_BLOCKS LACI_FORMAT_PC16P, LACI_FORMAT_PC16P
#define IMAGES LACI_FORMAT_HWC16N, LACI_FORMAT_HWC16N

static const sparse_case sparse_cases[] = {
    {"1x1", SPARSE_WINDOW(64, 70, 1, 7, 7, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), PIXELS, 1, 2},
    {"1x1 of images", SPARSE_WINDOW(64, 70, 1, 7, 7, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), IMAGES, 1, 2},
    {"one pixel", SPARSE_WINDOW(4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), PIXELS, 1, 2},
    {"Gemm", SPARSE_WINDOW(130, 33, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), IMAGES, 1, 2},
    {"odd channels", SPARSE_WINDOW(7, 5, 1, 5, 9, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), PIXELS, 1, 2},
    {"3x3", SPARSE_WINDOW(20, 31, 1, 9, 11, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 1, 2},
    {"3x3, two images", SPARSE_WINDOW(8, 9, 1, 5, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 2, 2},
    {"3x3 of 32 images", SPARSE_WINDOW(12, 25, 1, 4, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), IMAGES, 2,
     2},
    {"PC16P", SPARSE_WINDOW(64, 70, 1, 7, 7, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), PIXEL_BLOCKS, 2, 2},
    {"PC16P into CHW", SPARSE_WINDOW(9, 35, 1, 6, 7, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0),
     LACI_FORMAT_PC16P, LACI_FORMAT_CHW, 2, 2},
    {"3x3 into PC16P", SPARSE_WINDOW(9, 35, 1, 6, 7, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), LACI_FORMAT_CHW,
     LACI_FORMAT_PC16P, 2, 2},
    {"3x3, stride 2, into PC16P", SPARSE_WINDOW(9, 35, 1, 6, 7, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1),
     LACI_FORMAT_CHW, LACI_FORMAT_PC16P, 2, 2},
    {"3x3, stride 2", SPARSE_WINDOW(8, 30, 1, 9, 11, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1), PIXELS, 1, 2},
    {"3x3, stride 2 of images", SPARSE_WINDOW(8, 30, 1, 9, 8, 3, 3, 2, 2, 1, 1, 1, 1, 0, 1), IMAGES,
     1, 2},
    {"1x1, stride 2", SPARSE_WINDOW(16, 28, 1, 8, 8, 1, 1, 2, 2, 1, 1, 0, 0, 0, 0), PIXELS, 1, 2},
    {"7x7, stride 2", SPARSE_WINDOW(3, 8, 1, 20, 19, 7, 7, 2, 2, 1, 1, 3, 3, 3, 3), PIXELS, 1, 2},
    {"5x5", SPARSE_WINDOW(4, 12, 1, 6, 40, 5, 5, 1, 1, 1, 1, 2, 2, 2, 2), PIXELS, 1, 2},
    {"dilated", SPARSE_WINDOW(8, 8, 1, 9, 9, 3, 3, 1, 1, 2, 3, 2, 3, 2, 3), PIXELS, 1, 2},
    {"dilated, strides apart", SPARSE_WINDOW(8, 8, 1, 12, 13, 3, 2, 3, 2, 2, 3, 2, 1, 0, 4), PIXELS,
     1, 2},
    {"groups", SPARSE_WINDOW(24, 36, 3, 6, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 1, 2},
    {"groups of images", SPARSE_WINDOW(24, 36, 3, 3, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), IMAGES, 1,
     2},
    {"1-D", SPARSE_WINDOW(12, 17, 1, 1, 50, 1, 5, 1, 1, 1, 1, 0, 2, 0, 2), PIXELS, 1, 2},
    {"1:4", SPARSE_WINDOW(32, 40, 1, 6, 6, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), PIXELS, 1, 1},
    {"nothing kept", SPARSE_WINDOW(8, 40, 1, 4, 6, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), PIXELS, 1, 0},
    {"all kept", SPARSE_WINDOW(9, 29, 1, 4, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 1, 4},
    {"no pattern", SPARSE_WINDOW(61, 43, 1, 4, 6, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), PIXELS, 1, 5},
    {"many columns", SPARSE_WINDOW(700, 31, 1, 3, 6, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), PIXELS, 1, 2},
};
enum { N_SPARSE_CASES = sizeof sparse_cases / sizeof *sparse_cases };

/** Cases of floats in which the rows of the input have no zeros between them
 * (laci_sparse_may_be_unpadded). */
static const sparse_case sparse_unpadded_cases[] = {
    {"3x3", SPARSE_WINDOW(20, 31, 1, 9, 11, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 1, 2},
    {"3x3, two images", SPARSE_WINDOW(8, 40, 1, 7, 7, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 2, 2},
    {"3x3 into PC16P", SPARSE_WINDOW(9, 35, 1, 6, 7, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), LACI_FORMAT_CHW,
     LACI_FORMAT_PC16P, 2, 2},
    {"3x3, one row above", SPARSE_WINDOW(8, 12, 1, 6, 20, 3, 3, 1, 1, 1, 1, 1, 1, 0, 1), PIXELS, 1,
     2},
    {"3x3, one side", SPARSE_WINDOW(8, 12, 1, 6, 20, 3, 3, 1, 1, 1, 1, 1, 0, 1, 1), PIXELS, 1, 2},
    {"3x3, stride 2", SPARSE_WINDOW(8, 30, 1, 14, 14, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1), PIXELS, 1, 2},
    {"3x3, stride 2, odd", SPARSE_WINDOW(8, 30, 1, 9, 11, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1), PIXELS, 2,
     2},
    {"3x3, stride 2, into PC16P", SPARSE_WINDOW(9, 35, 1, 6, 7, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1),
     LACI_FORMAT_CHW, LACI_FORMAT_PC16P, 2, 2},
    {"3x3, stride 2, pads at the end", SPARSE_WINDOW(8, 9, 1, 8, 12, 3, 3, 2, 2, 1, 1, 0, 0, 1, 1),
     PIXELS, 1, 2},
    {"dilated, stride 2", SPARSE_WINDOW(8, 9, 1, 12, 13, 3, 3, 2, 2, 2, 2, 2, 2, 2, 2), PIXELS, 1,
     2},
    {"2x2", SPARSE_WINDOW(8, 9, 1, 5, 40, 2, 2, 1, 1, 1, 1, 1, 1, 0, 0), PIXELS, 1, 2},
    {"groups", SPARSE_WINDOW(24, 36, 3, 6, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 1, 2},
    {"one column", SPARSE_WINDOW(8, 9, 1, 20, 1, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 1, 2},
    {"1-D", SPARSE_WINDOW(12, 17, 1, 1, 50, 1, 3, 1, 1, 1, 1, 0, 1, 0, 1), PIXELS, 1, 2},
    {"all kept", SPARSE_WINDOW(9, 29, 1, 4, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 1, 4},
};
enum { N_SPARSE_UNPADDED_CASES = sizeof sparse_unpadded_cases / sizeof *sparse_unpadded_cases };

/** Returns the case with another type of values. */
static inline sparse_case sparse_case_of(const sparse_case *c, laci_sparse_values values) {
  sparse_case made = *c;
  made.window.values = values;
  return made;
}

/** Where a channel's value is: the index of the float that holds it (at), and its index among the
 * values that share these four bytes (part). */
typedef struct sparse_place {
  int64_t at;
  laci_sparse_values values;
  int part;
} sparse_place;

static inline sparse_place sparse_place_of(const laci_sparse_layout *l, laci_sparse_values values,
                                           int64_t channel, const int64_t pixel[2]) {
  const int64_t each = laci_sparse_values_per_word(values);
  return (sparse_place){laci_sparse_offset(l, channel / each, pixel[0], pixel[1]), values,
                        (int)(channel % each)};
}

static inline float sparse_get(const float *from, sparse_place place) {
  uint32_t bits;
  if (place.values == LACI_SPARSE_F32) return from[place.at];
  memcpy(&bits, from + place.at, sizeof bits);
  if (place.values == LACI_SPARSE_S8) return (float)(bits >> 8 * place.part & 0xFFU);
  return place.part ? laci_bf16_pair_high(bits) : laci_bf16_pair_low(bits);
}

/** Stores x, from -0.5 to 0.5; as a byte, from 0 to 255. */
static inline void sparse_put(float *to, sparse_place place, float x) {
  const int bits = 32 / laci_sparse_values_per_word(place.values), shift = bits * place.part;
  const uint32_t one = place.values == LACI_SPARSE_S8 ? (uint32_t)((x + 0.5F) * 255.99F)
                                                      : (uint32_t)laci_bf16_round(x);
  uint32_t all;
  if (place.values == LACI_SPARSE_F32) {
    to[place.at] = x;
    return;
  }
  memcpy(&all, to + place.at, sizeof all);
  all = (all & ~(((1U << bits) - 1) << shift)) | one << shift;
  memcpy(to + place.at, &all, sizeof all);
}

/* Chooses the kept elements. From row to row, blocks go through all combinations of two patterns.
 */
static inline void sparse_keep(const sparse_case *c, uint8_t *kept) {
  static const uint8_t two[6] = {3, 5, 9, 6, 10, 12};
  const laci_sparse_window *g = &c->window;
  const int64_t channels = g->channels_in / g->groups, taps = g->kernel_h * g->kernel_w;
  for (int64_t row = 0; row < g->channels_out; row++) {
    for (int64_t channel = 0; channel < channels; channel++) {
      for (int64_t tap = 0; tap < taps; tap++) {
        const int64_t block = channel / 4 * taps + tap;
        const int64_t pattern = row % 2 ? block / 6 + row / 2 : block + row / 12;
        uint8_t keep = two[pattern % 6];
        if (c->keep < 5 && c->keep != 2) keep = (uint8_t)((1 << c->keep) - 1);
        if (c->keep == 5)
          keep = (uint8_t)laci_rng_integer_below(4, (uint64_t)row, (uint64_t)block, 16);
        kept[(row * channels + channel) * taps + tap] = keep >> channel % 4 & 1;
      }
    }
  }
}

static inline float *sparse_guarded(int64_t n, int shift, float **memory) {
  const size_t bytes = (size_t)(n + 2 * SPARSE_GUARD_FLOATS) * sizeof(float);
  *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
  assert_non_null(*memory);
  memset(*memory, 0x5A, (bytes + 63) / 64 * 64);
  return *memory + SPARSE_GUARD_FLOATS / 2 + shift;
}

/* Fills the images with random pixels, and the padding with zeros. */
static inline void sparse_draw(const sparse_case *c, const laci_sparse_layout *l,
                               const int64_t sizes[3], uint64_t stream, float *to) {
  const int lanes = c->format == LACI_FORMAT_HWC16N ? LACI_SPARSE_LANES : 1;
  memset(to, 0, (size_t)(l->n_floats * c->n_images) * sizeof *to);
  for (int64_t image = 0; image < c->n_images; image++) {
    for (int64_t pixel = 0; pixel < sizes[0] * sizes[1] * sizes[2]; pixel++) {
      const int64_t channel = pixel / (sizes[1] * sizes[2]), y = pixel / sizes[2] % sizes[1];
      const sparse_place place =
          sparse_place_of(l, c->window.values, channel, (const int64_t[]){y, pixel % sizes[2]});
      for (int lane = 0; lane < lanes; lane++) {
        const uint64_t counter = (uint64_t)(image * lanes + lane);
        sparse_put(to + image * l->n_floats + lane, place,
                   (float)laci_rng_unit_interval(stream, counter, (uint64_t)pixel) - 0.5F);
      }
    }
  }
}

/* Draws int8 operands: weights from -127 to 127, a bias that makes sums wrap, and scales that make
 * results exceed 32-bit integers, infinite, or NaN. If the number of rows is no multiple of 3,
 * biases have a rest. */
static inline void sparse_quantize(int64_t n_rows, int64_t n_dense, sparse_operands *o) {
  for (int64_t at = 0; at < n_dense; at++) {
    o->dense[at] = (float)laci_rng_integer_below(5, 1, (uint64_t)at, 255) - 127;
  }
  for (int64_t row = 0; row < n_rows; row++) {
    o->whole_bias[row] = row % 11 == 10 ? INT32_MAX - 1000 : (int32_t)(row % 5 * 1000 - 2000);
    o->scale[row] = (float)(1 + row % 7) / 1000;
    o->rest[row] = (float)(row % 9 - 4) / 20;
    if (row % 13 == 12) o->scale[row] = 1e6F;
    if (row % 13 == 3) o->scale[row] = row % 2 ? 3e38F : NAN;
  }
  o->quantized = (laci_sparse_quantized){.bias = o->whole_bias,
                                         .scale = o->scale,
                                         .rest = n_rows % 3 == 0 ? NULL : o->rest,
                                         .residual_scale = 0.37F,
                                         .residual_zero = 113,
                                         .zero = 100,
                                         .high = UINT8_MAX};
}

/** Quantizations of sums before a residual is added. */
static const laci_sparse_middle sparse_middles[] = {
    {.scale = 0.71F, .zero = 90, .low = 20, .high = 240},
    {.scale = 1.3F, .zero = 0, .low = 0, .high = UINT8_MAX, .last = true},
};

/** Makes the operands of a case. layouts: those of the input and of the result. */
static inline void sparse_operands_at(const sparse_case *c, int shift,
                                      const laci_sparse_layouts *layouts, sparse_operands *o) {
  const laci_sparse_window *g = &c->window;
  const laci_sparse_layout in = layouts->in, out = layouts->out;
  const int64_t n_dense =
      g->channels_out * (g->channels_in / g->groups) * g->kernel_h * g->kernel_w;
  lac_error err = {0};
  *o = (sparse_operands){.n_x = in.n_floats * c->n_images, .n_y = out.n_floats * c->n_images};
  o->kept = malloc((size_t)n_dense);
  o->dense = malloc((size_t)n_dense * sizeof *o->dense);
  o->bias = malloc((size_t)g->channels_out * sizeof *o->bias);
  o->whole_bias = malloc((size_t)g->channels_out * sizeof *o->whole_bias);
  o->scale = malloc((size_t)g->channels_out * sizeof *o->scale);
  o->rest = malloc((size_t)g->channels_out * sizeof *o->rest);
  assert_true(o->kept && o->dense && o->bias && o->whole_bias && o->scale && o->rest);
  sparse_keep(c, o->kept);
  for (int64_t at = 0; at < n_dense; at++) {
    o->dense[at] = (float)laci_rng_unit_interval(5, 0, (uint64_t)at) - 0.5F;
  }
  for (int64_t row = 0; row < g->channels_out; row++) o->bias[row] = (float)(row % 5) / 4 - 0.5F;
  if (g->values == LACI_SPARSE_S8) sparse_quantize(g->channels_out, n_dense, o);
  if (laci_sparse_convolution_init(g, o->kept, &(laci_sparse_layouts){in, out, c->n_images},
                                   &o->convolution, &err)) {
    fail_msg("%s: %s", c->what, err.text);
  }
  laci_sparse_convolution_set_weights(&o->convolution, o->dense);
  o->x = sparse_guarded(o->n_x, shift, &o->memory_x);
  o->y = sparse_guarded(o->n_y, shift, &o->memory_y);
  o->residual = sparse_guarded(o->n_y, shift, &o->memory_residual);
  sparse_draw(c, &in, (const int64_t[]){g->channels_in, g->h, g->w}, 6, o->x);
  sparse_draw(c, &out, (const int64_t[]){g->channels_out, g->out_h, g->out_w}, 7, o->residual);
}

static inline void sparse_operands_init(const sparse_case *c, int shift, sparse_operands *o) {
  const laci_sparse_window *g = &c->window;
  const laci_sparse_border one = {1, 1, 1, 1, 1, 1};
  const int64_t channels = laci_sparse_layout_channels(g->channels_in, g->values);
  /* PC16P is converted from or to a CHW layout and has its rows. */
  const laci_sparse_layout in =
      c->format == LACI_FORMAT_PC16P
          ? laci_sparse_padded_layout(LACI_FORMAT_PC16P, channels, g->h, g->w, one)
          : laci_sparse_input_layout(c->format, g);
  const laci_sparse_layout out = laci_sparse_output_layout(c->format_out, g, &in, one);
  sparse_operands_at(c, shift, &(laci_sparse_layouts){in, out, c->n_images}, o);
}

/** Makes the operands of a case whose rows have no zeros between them. */
static inline void sparse_unpadded_operands_init(const sparse_case *c, int shift,
                                                 sparse_operands *o) {
  const laci_sparse_window *g = &c->window;
  laci_sparse_border border = laci_sparse_needed_border(g);
  border.left = border.right = 0;
  const laci_sparse_layout in =
      laci_sparse_padded_layout(LACI_FORMAT_CHW, g->channels_in, g->h, g->w, border);
  const laci_sparse_layout out = laci_sparse_output_layout(
      c->format_out, g, &in, (laci_sparse_border){.stride_h = 1, .stride_w = 1});
  assert_true(laci_sparse_may_be_unpadded(g));
  sparse_operands_at(c, shift, &(laci_sparse_layouts){in, out, c->n_images}, o);
  assert_non_null(o->convolution.product.neighbour);
}

static inline void sparse_operands_clear(sparse_operands *o) {
  laci_sparse_convolution_clear(&o->convolution);
  free(o->kept);
  free(o->dense);
  free(o->bias);
  free(o->whole_bias);
  free(o->scale);
  free(o->rest);
  free(o->memory_x);
  free(o->memory_y);
  free(o->memory_residual);
}

/** Returns the operands of a run, whose result is clipped to [low, high] where these are finite.
 * For int8, the limits are in o->quantized instead. */
static inline laci_sparse_operands sparse_run_of(sparse_operands *o, bool residual, float low,
                                                 float high) {
  o->quantized.low = isfinite(low) ? 30 : 0;
  o->quantized.high = isfinite(high) ? 190 : UINT8_MAX;
  return (laci_sparse_operands){
      .weight = o->convolution.kept.weight,
      .bias = o->bias,
      .x = o->x,
      .residual = residual ? o->residual : NULL,
      .y = o->y,
      .low = low,
      .high = high,
      .quantized = o->convolution.product.values == LACI_SPARSE_S8 ? &o->quantized : NULL};
}

/** Adds n functions after the clip, 3 at most; residual_last: the residual is added after them. */
static inline void sparse_follow(laci_sparse_operands *run, int n, bool residual_last) {
  static const laci_pointwise functions[3] = {{LACI_POINTWISE_SWISH, 1.5F, 0},
                                              {LACI_POINTWISE_LINEAR, -2, 0.25F},
                                              {LACI_POINTWISE_CLIP, -0.3F, 0.4F}};
  run->functions = functions;
  run->n_functions = n;
  run->residual_last = residual_last;
}

/** Returns the bytes of the result with its guards, which begin at memory_y. */
static inline size_t sparse_result_bytes(const sparse_operands *o) {
  return (size_t)(o->n_y + 2 * SPARSE_GUARD_FLOATS) * sizeof(float);
}

/** Overwrites the result with guard bytes, except for the zeros around images that tiles also
 * write. */
static inline void sparse_forget_result(const sparse_operands *o) {
  const laci_sparse_product *p = &o->convolution.product;
  memset(o->memory_y, 0x5A, sparse_result_bytes(o));
  for (int64_t at = 0; at < o->convolution.n_tiles; at++) {
    const laci_sparse_tile *tile = &o->convolution.tiles[at];
    for (int64_t row = 0; row < p->n_rows && tile->lanes & LACI_SPARSE_ZEROS_AROUND; row++) {
      float *y = o->y + tile->out + row / laci_sparse_values_per_word(p->values) * p->row_stride;
      for (int lane = 0; lane < LACI_SPARSE_LANES; lane++) {
        if (!(tile->lanes >> lane & 1)) y[lane] = 0;
      }
    }
  }
}

/** Returns the result by definition, with guards; the caller frees it. */
static inline void *sparse_wanted_result(const sparse_operands *o,
                                         const laci_sparse_operands *run) {
  const laci_sparse_part all = {o->convolution.tiles, 0, o->convolution.n_tiles, 0,
                                o->convolution.product.n_rows};
  void *want = malloc(sparse_result_bytes(o));
  assert_non_null(want);
  sparse_forget_result(o);
  laci_sparse_multiply_scalar(&o->convolution.product, run, &all);
  memcpy(want, o->memory_y, sparse_result_bytes(o));
  return want;
}

#endif
