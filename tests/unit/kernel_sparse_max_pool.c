/* SPDX-License-Identifier: Apache-2.0
 * kernel/sparse/max_pool: every variant against the maximum of each window, of bytes and of floats,
 * in CHW, PC16P and HWC16N, at any alignment, however the work is cut, with nothing written between
 * pixels. */
#include "kernel/sparse/max_pool.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "cpu/cpu.h"

#define LEVEL(name, level) level,
static const laci_cpu_level levels[] = {LACI_KERNEL_VARIANTS(LEVEL)};
#undef LEVEL
enum { N_LEVELS = sizeof levels / sizeof *levels, LANES = LACI_SPARSE_LANES, PLACE = 4 };
enum { GUARD = 16, UNTOUCHED = 0x5A };

#define WINDOW(c, height, width, out_height, out_width, kh, kw, sh, sw, top, left)          \
  {                                                                                         \
    .channels_in = (c), .channels_out = (c), .groups = 1, .h = (height), .w = (width),      \
    .out_h = (out_height), .out_w = (out_width), .kernel_h = (kh), .kernel_w = (kw),        \
    .stride_h = (sh), .stride_w = (sw), .dilation_h = 1, .dilation_w = 1, .pad_top = (top), \
    .pad_left = (left), .values = LACI_SPARSE_S8                                            \
  }

static const laci_sparse_window windows[] = {
    WINDOW(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0),      WINDOW(16, 12, 12, 6, 6, 3, 3, 2, 2, 1, 1),
    WINDOW(7, 5, 9, 5, 9, 3, 3, 1, 1, 1, 1),      WINDOW(8, 6, 7, 3, 4, 2, 2, 2, 2, 0, 0),
    WINDOW(4, 9, 200, 3, 100, 3, 2, 3, 2, 0, 0),  WINDOW(5, 3, 70, 2, 68, 2, 3, 1, 1, 0, 0),
    WINDOW(4, 20, 300, 5, 37, 5, 32, 4, 8, 2, 3),
};
enum { N_WINDOWS = sizeof windows / sizeof *windows };

static const laci_memory_format kinds[] = {LACI_FORMAT_CHW, LACI_FORMAT_PC16P, LACI_FORMAT_HWC16N};

/* A byte, or the first of a float's. */
static uint8_t *place_at(const laci_max_pool *p, const laci_sparse_layout *l, const float *values,
                         int64_t channel, const int64_t pixel[2], int lane) {
  const int64_t each = laci_sparse_values_per_word(p->window.values);
  const int64_t at = laci_sparse_offset(l, channel / each, pixel[0], pixel[1]) + lane;
  return (uint8_t *)(uintptr_t)(values + at) + channel % each;
}

static float value_of(const laci_max_pool *p, const uint8_t *place) {
  float value;
  if (p->window.values == LACI_SPARSE_S8) return *place;
  memcpy(&value, place, sizeof value);
  return value;
}

static float most_of(const laci_max_pool *p, const float *x, int64_t channel,
                     const int64_t pixel[2], int lane) {
  const laci_sparse_window *g = &p->window;
  float most = -INFINITY;
  for (int64_t tap = 0; tap < g->kernel_h * g->kernel_w; tap++) {
    const int64_t at[2] = {pixel[0] * g->stride_h - g->pad_top + tap / g->kernel_w,
                           pixel[1] * g->stride_w - g->pad_left + tap % g->kernel_w};
    if (at[0] < 0 || at[0] >= g->h || at[1] < 0 || at[1] >= g->w) continue;
    const float value = value_of(p, place_at(p, &p->in, x, channel, at, lane));
    most = value > most ? value : most;
  }
  return most;
}

/* Results are compared and forgotten: what is left is what was there before. */
static void expect_most(const laci_max_pool *p, const float *x, float *y, int64_t n_y) {
  const laci_sparse_window *g = &p->window;
  const int lanes = p->in.format == LACI_FORMAT_HWC16N ? LANES : 1;
  const int64_t each = laci_sparse_values_per_word(g->values);
  const int64_t channels = laci_sparse_layout_channels(g->channels_in, g->values) * each;
  for (int64_t at = 0; at < p->n_image_blocks * channels * g->out_h * g->out_w * lanes; at++) {
    const int64_t row = at / lanes / g->out_w, channel = row / g->out_h,
                  image_block = channel / channels;
    const int64_t pixel[2] = {row % g->out_h, at / lanes % g->out_w};
    const int lane = (int)(at % lanes);
    const float *from = x + image_block * p->in.n_floats, *to = y + image_block * p->out.n_floats;
    const float got = value_of(p, place_at(p, &p->out, to, channel % channels, pixel, lane));
    const float want = most_of(p, from, channel % channels, pixel, lane);
    assert_memory_equal(&got, &want, sizeof want);
  }
  for (int64_t at = 0; at < p->n_image_blocks * channels * g->out_h * g->out_w * lanes; at++) {
    const int64_t row = at / lanes / g->out_w, channel = row / g->out_h,
                  image_block = channel / channels;
    const int64_t pixel[2] = {row % g->out_h, at / lanes % g->out_w};
    const float *to = y + image_block * p->out.n_floats;
    memset(place_at(p, &p->out, to, channel % channels, pixel, (int)(at % lanes)), UNTOUCHED,
           (size_t)(PLACE / each));
  }
  for (int64_t at = -GUARD * PLACE; at < (n_y + GUARD) * PLACE; at++) {
    assert_int_equal(((const uint8_t *)y)[at], UNTOUCHED);
  }
}

static void check(const laci_max_pool *p, int shift) {
  const int64_t n_x = p->in.n_floats * p->n_image_blocks, n_y = p->out.n_floats * p->n_image_blocks;
  const int64_t items = laci_max_pool_n_items(p), half = items / 2;
  float *x = malloc((size_t)(n_x + shift) * sizeof *x);
  float *memory = malloc((size_t)(n_y + 2 * GUARD + shift) * sizeof *memory);
  float *y = memory + GUARD + shift;
  assert_true(x && memory);
  for (int64_t at = 0; at < (n_x + shift) * PLACE; at++) {
    ((uint8_t *)x)[at] = (uint8_t)laci_rng_integer_below(9, 1, (uint64_t)at, 256);
  }
  for (int64_t at = 0; at < n_x + shift && p->window.values == LACI_SPARSE_F32; at++) {
    x[at] = at % 50 == 49 ? -INFINITY : (float)laci_rng_unit_interval(9, 2, (uint64_t)at) - 2;
  }
  memset(memory, UNTOUCHED, (size_t)(n_y + 2 * GUARD + shift) * sizeof *memory);
  laci_max_pool_variant()(p, x + shift, y, half, items);
  laci_max_pool_variant()(p, x + shift, y, 0, half);
  expect_most(p, x + shift, y, n_y);
  free(x);
  free(memory);
}

static void windows_give_their_most(void **state) {
  const laci_cpu_level start = laci_cpu_level_in_force();
  const laci_sparse_border in = {1, 2, 0, 1, 1, 1}, out = {0, 1, 1, 0, 1, 1};
  (void)state;
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    for (int at = 0; at < N_WINDOWS * 6; at++) {
      laci_sparse_window g = windows[at / 6];
      g.values = at / 3 % 2 ? LACI_SPARSE_F32 : LACI_SPARSE_S8;
      const int64_t n = laci_sparse_layout_channels(g.channels_in, g.values);
      const laci_memory_format format = kinds[at % 3];
      const laci_max_pool p = {g, laci_sparse_padded_layout(format, n, g.h, g.w, in),
                               laci_sparse_padded_layout(format, n, g.out_h, g.out_w, out), 2};
      assert_true(laci_max_pool_can_compute(&g));
      check(&p, 0);
      check(&p, 1);
    }
  }
  (void)laci_cpu_limit_level(start);
}

/* Of windows that have no pixel, too wide ones, and others. */
static void other_windows_are_refused(void **state) {
  static const laci_sparse_window refused[] = {
      WINDOW(4, 5, 5, 5, 5, 2, 2, 1, 1, 2, 0), WINDOW(4, 5, 5, 3, 6, 1, 1, 1, 1, 0, 0),
      WINDOW(4, 5, 99, 5, 9, 2, 33, 1, 8, 0, 0), WINDOW(4, 5, 99, 5, 9, 2, 9, 1, 9, 0, 0)};
  laci_sparse_window dilated = windows[1];
  (void)state;
  for (size_t at = 0; at < sizeof refused / sizeof *refused; at++) {
    assert_false(laci_max_pool_can_compute(&refused[at]));
  }
  dilated.dilation_w = 2;
  laci_sparse_window pairs = windows[1];
  pairs.values = LACI_SPARSE_BF16;
  assert_false(laci_max_pool_can_compute(&pairs));
  assert_false(laci_max_pool_can_compute(&dilated));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(windows_give_their_most),
      cmocka_unit_test(other_windows_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
