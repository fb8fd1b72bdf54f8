/* SPDX-License-Identifier: Apache-2.0
 * kernel/sparse/bytes: every variant, at any alignment and however the work is cut: int8x4 against
 * the bytes that QuantizeLinear gives, floats from them against kernel/pointwise/fake_quantize bit
 * by bit, sums against the rounding of an exact sum. */
#include "kernel/sparse/bytes.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "cpu/cpu.h"

#define LEVEL(name, level) level,
static const laci_cpu_level levels[] = {LACI_KERNEL_VARIANTS(LEVEL)};
#undef LEVEL
enum {
  N_LEVELS = sizeof levels / sizeof *levels,
  GUARD = 16,
  LANES = LACI_SPARSE_LANES,
  INT8X4 = 4
};
static const uint32_t guard = 0x5A5A5A5A;

/* ---- Layouts ---- */

typedef struct guarded {
  float *memory, *at; /* of guards, and after them */
  int64_t n;
} guarded;

static guarded guarded_of(int64_t n, int shift) {
  guarded p = {malloc((size_t)(n + 2 * GUARD) * sizeof(float)), NULL, n};
  assert_non_null(p.memory);
  for (int64_t at = 0; at < n + 2 * GUARD; at++) memcpy(p.memory + at, &guard, sizeof guard);
  p.at = p.memory + GUARD / 2 + shift;
  return p;
}

static uint32_t word_at(const float *at) {
  uint32_t word;
  memcpy(&word, at, sizeof word);
  return word;
}

static void expect_guards(const guarded *p) {
  for (const float *at = p->memory; at < p->at; at++) assert_int_equal(word_at(at), guard);
  for (const float *at = p->at + p->n; at < p->memory + p->n + 2 * GUARD; at++) {
    assert_int_equal(word_at(at), guard);
  }
}

/* ---- Forms ---- */

typedef struct shape {
  laci_memory_format format;
  int64_t channels, h, w, n_image_blocks;
  laci_sparse_border border;
} shape;

/* The last one's pixels are apart, since they would fall into one set of a cache. */
static const shape shapes[] = {
    {LACI_FORMAT_CHW, 1, 1, 1, 1, {0, 0, 0, 0, 1, 1}},
    {LACI_FORMAT_CHW, 8, 5, 7, 2, {1, 1, 1, 1, 1, 1}},
    {LACI_FORMAT_CHW, 7, 6, 5, 3, {1, 1, 1, 1, 2, 2}},
    {LACI_FORMAT_PC16P, 4, 3, 5, 1, {0, 0, 0, 0, 1, 1}},
    {LACI_FORMAT_PC16P, 18, 7, 9, 2, {0, 0, 0, 1, 1, 1}},
    {LACI_FORMAT_HWC16N, 5, 2, 3, 2, {1, 0, 2, 1, 1, 1}},
    {LACI_FORMAT_HWC16N, 256, 2, 2, 1, {0, 0, 0, 0, 1, 1}},
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static laci_bytes_form form_of(const shape *s, const laci_fake_quantized *q) {
  const int64_t int8x4 = laci_sparse_layout_channels(s->channels, LACI_SPARSE_S8);
  return (laci_bytes_form){laci_sparse_padded_layout(s->format, s->channels, s->h, s->w, s->border),
                           laci_sparse_padded_layout(s->format, int8x4, s->h, s->w, s->border),
                           s->channels, s->n_image_blocks, q};
}

/* The places of an image block, borders among them, and where one of a channel is. */
static int64_t places_of(const laci_bytes_form *f) {
  const laci_sparse_layout *l = &f->int8x4;
  if (l->format == LACI_FORMAT_CHW) return l->channel_stride;
  if (l->format == LACI_FORMAT_HWC16N) return l->n_floats / l->pixel_stride * LANES;
  return l->n_floats / laci_sparse_layout_channels(f->channels, LACI_SPARSE_S8);
}

static int64_t at_of(const laci_sparse_layout *l, int64_t channel, int64_t place) {
  if (l->format == LACI_FORMAT_CHW) return channel * l->channel_stride + place;
  const int64_t sixteen = l->format == LACI_FORMAT_PC16P ? LANES : 1;
  return place / LANES * sixteen * l->pixel_stride + channel * l->channel_stride + place % LANES;
}

static const laci_fake_quantized grids[] = {
    {0.03F, -120, 135}, {0.02F, -125, 130}, {1, 0, 255}, {0.1F, -255, 0}};
enum { N_GRIDS = sizeof grids / sizeof *grids };

static float value_of(const laci_fake_quantized *q, int64_t at) {
  static const float edges[] = {0, -0.0F, 0.5F, -1.5F, 2.5F, 1e30F, -1e30F, INFINITY, NAN};
  const int64_t n_edges = sizeof edges / sizeof *edges;
  if (at % 5 == 0) return edges[at / 5 % n_edges] * q->scale;
  return ((float)laci_rng_unit_interval(3, 1, (uint64_t)at) - 0.5F) * 700 * q->scale;
}

static uint32_t byte_of(const laci_fake_quantized *q, float x) {
  const double whole = (double)rintf(x / q->scale), low = (double)q->low, high = (double)q->high;
  if (isnan(x)) return 0;
  return (uint32_t)(fmin(fmax(whole, low), high) - low);
}

static void expect_int8x4(const laci_bytes_form *f, const float *floats, const float *int8x4) {
  const int64_t n_int8x4 = laci_sparse_layout_channels(f->channels, LACI_SPARSE_S8);
  for (int64_t place = 0; place < places_of(f); place++) {
    for (int64_t channel = 0; channel < n_int8x4 * INT8X4; channel++) {
      const uint32_t got = word_at(int8x4 + at_of(&f->int8x4, channel / INT8X4, place));
      const uint32_t want = channel < f->channels
                                ? byte_of(f->q, floats[at_of(&f->floats, channel, place)])
                                : (uint32_t)laci_bytes_zero_point(f->q);
      assert_int_equal(got >> channel % INT8X4 * 8 & 0xFF, want);
    }
  }
}

static void expect_floats(const laci_bytes_form *f, const float *before, const float *after) {
  for (int64_t place = 0; place < places_of(f); place++) {
    for (int64_t channel = 0; channel < f->channels; channel++) {
      const int64_t at = at_of(&f->floats, channel, place);
      float want;
      laci_fake_quantize_scalar(f->q, before + at, 1, &want);
      assert_int_equal(word_at(after + at), word_at(&want));
    }
  }
}

/* In two parts, the last one first. */
static void pack_and_unpack(const laci_bytes_form *f, int shift) {
  const laci_bytes_kernel *kernel = laci_bytes_variant();
  const int64_t items = laci_bytes_n_items(f), half = items / 2;
  guarded floats = guarded_of(f->floats.n_floats * f->n_image_blocks, shift);
  guarded int8x4 = guarded_of(f->int8x4.n_floats * f->n_image_blocks, 2 * shift);
  guarded back = guarded_of(floats.n, shift);
  for (int64_t at = 0; at < floats.n; at++) floats.at[at] = value_of(f->q, at);
  kernel->pack(f, floats.at, int8x4.at, half, items);
  kernel->pack(f, floats.at, int8x4.at, 0, half);
  kernel->unpack(f, int8x4.at, back.at, half, items);
  kernel->unpack(f, int8x4.at, back.at, 0, half);
  for (int64_t at = 0; at < f->n_image_blocks; at++) {
    const int64_t skip = at * f->floats.n_floats;
    expect_int8x4(f, floats.at + skip, int8x4.at + at * f->int8x4.n_floats);
    expect_floats(f, floats.at + skip, back.at + skip);
  }
  expect_guards(&int8x4);
  expect_guards(&back);
  free(floats.memory);
  free(int8x4.memory);
  free(back.memory);
}

static void layouts_go_through_bytes(void **state) {
  const laci_cpu_level start = laci_cpu_level_in_force();
  (void)state;
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    for (int at = 0; at < N_SHAPES * N_GRIDS; at++) {
      const laci_bytes_form f = form_of(&shapes[at % N_SHAPES], &grids[at / N_SHAPES]);
      pack_and_unpack(&f, 0);
      pack_and_unpack(&f, 1);
    }
  }
  (void)laci_cpu_limit_level(start);
}

/* ---- Sums ---- */

enum { N_PLACES = 256 * 256 / INT8X4 + 11 };

static const laci_bytes_sum sums[] = {
    {.a_scale = 0.5F, .b_scale = 0.25F, .a_zero = 3, .b_zero = 128, .zero = 40, .high = 255},
    {.a_scale = 1.7F, .b_scale = 0.3F, .zero = 0, .low = 0, .high = 200},
    {.a_scale = 1e-3F,
     .b_scale = 2,
     .a_zero = 255,
     .b_zero = 7,
     .zero = 128,
     .low = 128,
     .high = 255},
    {.a_scale = 1e6F, .b_scale = 1e6F, .a_zero = 255, .b_zero = 0, .zero = 1, .high = 255},
};

/* The sum of two products of three bytes each is exact in double. */
static int sum_of(const laci_bytes_sum *s, int a, int b) {
  const double first = (double)(((float)a - s->a_zero) * s->a_scale);
  const float v = (float)(((double)b - (double)s->b_zero) * (double)s->b_scale + first);
  const double byte = (double)rintf(v) + (double)s->zero;
  return (int)fmin(fmax(byte, (double)s->low), (double)s->high);
}

static void expect_sums(const laci_bytes_sum *s, const float *a, const float *b, const float *y,
                        int64_t n) {
  for (int64_t at = 0; at < INT8X4 * n; at++) {
    const int shift = (int)(at % INT8X4 * 8);
    const int first = (int)(word_at(a + at / INT8X4) >> shift & 0xFF);
    const int second = (int)(word_at(b + at / INT8X4) >> shift & 0xFF);
    assert_int_equal(word_at(y + at / INT8X4) >> shift & 0xFF, sum_of(s, first, second));
  }
}

/* All pairs of bytes; some of them, with a guard after; over an operand. */
static void check_sum(const laci_bytes_sum *s, const float *a, const float *b) {
  static float y[N_PLACES + 1];
  laci_bytes_add *add = laci_bytes_variant()->add;
  memcpy(&y[N_PLACES], &guard, sizeof guard);
  add(s, a, b, N_PLACES, y);
  expect_sums(s, a, b, y, N_PLACES);
  assert_int_equal(word_at(&y[N_PLACES]), guard);
  for (int n = 0; n < 40; n++) {
    memcpy(&y[n + 1], &guard, sizeof guard);
    add(s, a + 101, b + 999, n, y + 1);
    expect_sums(s, a + 101, b + 999, y + 1, n);
    assert_int_equal(word_at(&y[n + 1]), guard);
    memcpy(y, b + 777, (size_t)n * sizeof *y);
    add(s, a + 5, y, n, y);
    expect_sums(s, a + 5, b + 777, y, n);
  }
}

static void sums_are_rounded_once(void **state) {
  static float a[N_PLACES], b[N_PLACES];
  const laci_cpu_level start = laci_cpu_level_in_force();
  (void)state;
  for (int at = 0; at < N_PLACES; at++) {
    for (int byte = 0; byte < INT8X4; byte++) {
      ((uint8_t *)(a + at))[byte] = (uint8_t)(INT8X4 * at + byte);
      ((uint8_t *)(b + at))[byte] = (uint8_t)(INT8X4 * at / 256);
    }
  }
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    for (size_t at = 0; at < sizeof sums / sizeof *sums; at++) check_sum(&sums[at], a, b);
  }
  (void)laci_cpu_limit_level(start);
}

/* ---- A constant for each channel ---- */

static uint32_t shifted_byte(const laci_fake_quantized *q, const laci_bytes_shift *s, uint32_t byte,
                             int64_t channel) {
  const float x = ((float)byte + q->low) * q->scale;
  return byte_of(s->to, x + s->by[channel]);
}

enum { MOST_CHANNELS = 512 };

static void expect_shifted(const laci_bytes_form *f, const laci_bytes_shift *s, const float *x,
                           const float *y) {
  for (int64_t place = 0; place < places_of(f); place++) {
    for (int64_t channel = 0; channel < f->channels; channel++) {
      const int64_t at = at_of(&f->int8x4, channel / INT8X4, place);
      const int bits = (int)(channel % INT8X4 * 8);
      assert_int_equal(word_at(y + at) >> bits & 0xFF,
                       shifted_byte(f->q, s, word_at(x + at) >> bits & 0xFF, channel));
    }
  }
}

static void check_shift(const laci_bytes_form *f, int shift) {
  static const laci_fake_quantized to = {0.071F, -33, 222};
  float by[MOST_CHANNELS];
  const laci_bytes_shift s = {by, &to};
  const int64_t items = laci_bytes_n_items(f);
  guarded x = guarded_of(f->int8x4.n_floats * f->n_image_blocks, shift);
  guarded y = guarded_of(x.n, shift);
  for (int at = 0; at < MOST_CHANNELS; at++) by[at] = (float)at * 0.37F - 40;
  for (int64_t at = 0; at < INT8X4 * x.n; at++)
    ((uint8_t *)x.at)[at] = (uint8_t)(at * 7 + at / 256);
  laci_bytes_variant()->shift(f, &s, x.at, y.at, items / 2, items);
  laci_bytes_variant()->shift(f, &s, x.at, y.at, 0, items / 2);
  for (int64_t block = 0; block < f->n_image_blocks; block++) {
    const int64_t skip = block * f->int8x4.n_floats;
    expect_shifted(f, &s, x.at + skip, y.at + skip);
  }
  expect_guards(&y);
  free(x.memory);
  free(y.memory);
}

static void constants_are_added_to_channels(void **state) {
  const laci_cpu_level start = laci_cpu_level_in_force();
  (void)state;
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    for (int at = 0; at < N_SHAPES * N_GRIDS; at++) {
      const laci_bytes_form f = form_of(&shapes[at % N_SHAPES], &grids[at / N_SHAPES]);
      check_shift(&f, at % 2);
    }
  }
  (void)laci_cpu_limit_level(start);
}

/* ---- A gate for each channel ---- */

static const laci_bytes_gate gates[] = {
    {.scale = 0.0071F, .x_zero = 13, .gate_zero = 0, .zero = 40, .high = 255},
    {.scale = 0.11F, .x_zero = 128, .gate_zero = 200, .zero = 100, .low = 30, .high = 190},
};

static int multiplied(const laci_bytes_gate *g, uint32_t x, uint32_t gate) {
  const float factor = ((float)gate - g->gate_zero) * g->scale;
  const float v = ((float)x - g->x_zero) * factor;
  return (int)fmin(fmax((double)rintf(v) + (double)g->zero, (double)g->low), (double)g->high);
}

static void expect_multiplied(const laci_bytes_form *f, const laci_bytes_gate *g, const float *of,
                              const float *x, const float *y) {
  const bool images = f->int8x4.format == LACI_FORMAT_HWC16N;
  for (int64_t place = 0; place < places_of(f); place++) {
    for (int64_t channel = 0; channel < f->channels; channel++) {
      const int64_t at = at_of(&f->int8x4, channel / INT8X4, place);
      const int64_t gate = laci_sparse_offset(&g->layout, channel / INT8X4, 0, 0);
      const int bits = (int)(channel % INT8X4 * 8);
      const uint32_t factor = word_at(of + gate + (images ? place % 16 : 0)) >> bits & 0xFF;
      assert_int_equal(word_at(y + at) >> bits & 0xFF,
                       multiplied(g, word_at(x + at) >> bits & 0xFF, factor));
    }
  }
}

static void check_gate(const laci_bytes_form *f, const laci_bytes_gate *of, int shift) {
  const laci_sparse_border none = {.stride_h = 1, .stride_w = 1};
  const int64_t items = laci_bytes_n_items(f), channels = (f->channels + INT8X4 - 1) / INT8X4;
  laci_bytes_gate g = *of;
  g.layout = laci_sparse_padded_layout(f->int8x4.format, channels, 1, 1, none);
  guarded factors = guarded_of(g.layout.n_floats * f->n_image_blocks, shift);
  g.factors = factors.at;
  guarded x = guarded_of(f->int8x4.n_floats * f->n_image_blocks, shift);
  guarded y = guarded_of(x.n, shift);
  for (int64_t at = 0; at < INT8X4 * factors.n; at++)
    ((uint8_t *)factors.at)[at] = (uint8_t)(at * 29 + at / 256);
  for (int64_t at = 0; at < INT8X4 * x.n; at++)
    ((uint8_t *)x.at)[at] = (uint8_t)(at * 7 + at / 256);
  laci_bytes_variant()->multiply(f, &g, x.at, y.at, items / 2, items);
  laci_bytes_variant()->multiply(f, &g, x.at, y.at, 0, items / 2);
  for (int64_t block = 0; block < f->n_image_blocks; block++) {
    const int64_t skip = block * f->int8x4.n_floats;
    expect_multiplied(f, &g, factors.at + block * g.layout.n_floats, x.at + skip, y.at + skip);
  }
  expect_guards(&y);
  free(factors.memory);
  free(x.memory);
  free(y.memory);
}

static void gates_multiply_channels(void **state) {
  const laci_cpu_level start = laci_cpu_level_in_force();
  (void)state;
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    for (int at = 0; at < N_SHAPES * N_GRIDS; at++) {
      const laci_bytes_form f = form_of(&shapes[at % N_SHAPES], &grids[at / N_SHAPES]);
      for (int gate = 0; gate < 2; gate++) check_gate(&f, &gates[gate], at % 2);
    }
  }
  (void)laci_cpu_limit_level(start);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(layouts_go_through_bytes),
      cmocka_unit_test(sums_are_rounded_once),
      cmocka_unit_test(constants_are_added_to_channels),
      cmocka_unit_test(gates_multiply_channels),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
