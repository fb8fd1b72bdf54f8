/* SPDX-License-Identifier: Apache-2.0
 * kernel/sparse/average_pool: every variant against the average of each window, in all layouts, at
 * any alignment, however the work is cut, with nothing written between pixels. */
#include "kernel/sparse/average_pool.h"

#include "cpu/cpu.h"
#include "kernel/sparse/reorder.h"
#include "support/sparse_case.h"

#define LEVEL(name, level) level,
static const laci_cpu_level levels[] = {LACI_KERNEL_VARIANTS(LEVEL)};
#undef LEVEL
enum { N_LEVELS = sizeof levels / sizeof *levels, LANES = LACI_SPARSE_LANES, SIDE = 4 };

#define INTO_BLOCKS LACI_FORMAT_CHW, LACI_FORMAT_PC16P

static const sparse_case cases[] = {
    {"whole image", SPARSE_WINDOW(9, 9, 1, 7, 7, 7, 7, 1, 1, 1, 1, 0, 0, 0, 0), PIXELS, 2, 4},
    {"whole wide image", SPARSE_WINDOW(4, 4, 1, 3, 90, 3, 90, 1, 1, 1, 1, 0, 0, 0, 0), INTO_BLOCKS,
     1, 4},
    {"2x2", SPARSE_WINDOW(8, 8, 1, 14, 14, 2, 2, 2, 2, 1, 1, 0, 0, 0, 0), PIXELS, 1, 4},
    {"3x3", SPARSE_WINDOW(7, 7, 1, 9, 20, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), INTO_BLOCKS, 1, 4},
    {"3x3, wide", SPARSE_WINDOW(2, 2, 1, 4, 150, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 1, 4},
    {"stride 3", SPARSE_WINDOW(5, 5, 1, 12, 13, 5, 3, 2, 3, 1, 1, 2, 1, 2, 1), PIXELS, 1, 4},
    {"images", SPARSE_WINDOW(6, 6, 1, 5, 4, 3, 3, 1, 2, 1, 1, 1, 1, 1, 1), IMAGES, 2, 4},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static int expected_byte(const laci_average_pool *p, const float *x, int64_t channel,
                         const int64_t pixel[2]) {
  const laci_sparse_window *g = &p->window;
  int64_t sum = 0, n = 0;
  for (int64_t tap = 0; tap < g->kernel_h * g->kernel_w; tap++) {
    const int64_t at[2] = {pixel[0] * g->stride_h - g->pad_top + tap / g->kernel_w,
                           pixel[1] * g->stride_w - g->pad_left + tap % g->kernel_w};
    if (at[0] < 0 || at[0] >= g->h || at[1] < 0 || at[1] >= g->w) continue;
    sum += (int64_t)sparse_get(x, sparse_place_of(&p->in, LACI_SPARSE_S8, channel, at)) - p->x_zero;
    n++;
  }
  const float of = p->counts_padding ? (float)(g->kernel_h * g->kernel_w) : (float)n;
  const float v = (float)sum * (p->scale / of);
  return (int)fmax(p->low, fmin(p->high, nearbyint((double)v) + p->zero));
}

/* Results are compared and forgotten: what is left is what was there before. */
static void expect_averages(const sparse_case *c, const laci_average_pool *p, const float *x,
                            float *y) {
  const laci_sparse_window *g = &p->window;
  const int lanes = p->in.format == LACI_FORMAT_HWC16N ? LANES : 1;
  const int64_t channels = (g->channels_in + SIDE - 1) / SIDE * SIDE, each = g->out_h * g->out_w;
  for (int64_t at = 0; at < p->n_image_blocks * channels * each * lanes; at++) {
    const int64_t image = at / lanes / each / channels, channel = at / lanes / each % channels;
    const int64_t pixel[2] = {at / lanes % each / g->out_w, at / lanes % g->out_w};
    float *to = y + image * p->out.n_floats + at % lanes;
    const sparse_place place = sparse_place_of(&p->out, LACI_SPARSE_S8, channel, pixel);
    const int got = (int)sparse_get(to, place);
    const int want = expected_byte(p, x + image * p->in.n_floats + at % lanes, channel, pixel);
    if (got != want)
      fail_msg("%s: channel %d, pixel %d: got %d, want %d", c->what, (int)channel, (int)(at % each),
               got, want);
    ((uint8_t *)(to + place.at))[place.part] = 0x5A;
  }
}

static void check(const sparse_case *c, bool counts_padding, int shift) {
  const laci_sparse_border around = {1, 2, 0, 1, 1, 1}, out = {0, 1, 1, 0, 1, 1};
  laci_sparse_window g = c->window;
  g.values = LACI_SPARSE_S8;
  const int64_t words = laci_sparse_layout_channels(g.channels_in, g.values);
  const laci_average_pool p = {
      .window = g,
      .in = laci_sparse_padded_layout(c->format, words, g.h, g.w, around),
      .out = laci_sparse_padded_layout(c->format_out, words, g.out_h, g.out_w, out),
      .n_image_blocks = c->n_images,
      .counts_padding = counts_padding,
      .scale = 1.7F,
      .x_zero = 90,
      .zero = 77,
      .low = counts_padding ? 60 : 0,
      .high = counts_padding ? 200 : UINT8_MAX};
  float *memory[2];
  float *x = sparse_guarded(p.in.n_floats * c->n_images, shift, &memory[0]);
  float *y = sparse_guarded(p.out.n_floats * c->n_images, shift, &memory[1]);
  const int64_t n = laci_average_pool_n_items(&p);
  assert_true(laci_average_pool_can_compute(&g));
  for (int64_t at = 0; at < p.in.n_floats * c->n_images * SIDE; at++) {
    ((uint8_t *)x)[at] = (uint8_t)laci_rng_integer_below(9, 1, (uint64_t)at, 256);
  }
  const laci_sparse_size size = {words, g.h, g.w,
                                 c->n_images * (c->format == LACI_FORMAT_HWC16N ? LANES : 1)};
  laci_sparse_fill_border(&p.in, &size, 0x01010101U * 90, x, 0,
                          laci_sparse_border_n_items(&p.in, &size));
  laci_average_pool_variant()(&p, x, y, n / 2, n);
  laci_average_pool_variant()(&p, x, y, 0, n / 2);
  expect_averages(c, &p, x, y);
  const uint8_t *left = (const uint8_t *)memory[1];
  for (int64_t at = 0; at < (p.out.n_floats * c->n_images + 2 * SPARSE_GUARD_FLOATS) * SIDE; at++)
    assert_int_equal(left[at], 0x5A);
  free(memory[0]);
  free(memory[1]);
}

static void windows_give_their_averages(void **state) {
  const laci_cpu_level start = laci_cpu_level_in_force();
  (void)state;
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    for (int at = 0; at < N_CASES * 4; at++) check(&cases[at / 4], at / 2 % 2 == 1, at % 2);
  }
  (void)laci_cpu_limit_level(start);
}

static void other_windows_are_refused(void **state) {
  laci_sparse_window g = cases[0].window;
  (void)state;
  assert_false(laci_average_pool_can_compute(&g)); /* floats */
  g.values = LACI_SPARSE_S8;
  assert_true(laci_average_pool_can_compute(&g));
  g.dilation_w = 2;
  assert_false(laci_average_pool_can_compute(&g));
  g.dilation_w = 1;
  g.pad_top = g.kernel_h; /* a window without a pixel */
  assert_false(laci_average_pool_can_compute(&g));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(windows_give_their_averages),
      cmocka_unit_test(other_windows_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
