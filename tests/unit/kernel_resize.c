/* SPDX-License-Identifier: Apache-2.0
 * kernel/image: every variant resizes to the scalar one's bytes, reads no more than it may and
 * writes its rows alone. */
#include "kernel/image/resize.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "cpu/cpu.h"
#include "data/resize_in.h"

enum { GUARD = 32, MARK = 0xA5 };

static const laci_image_resize *variant(int level) {
#define ONE(name, of) \
  if (level == (of)) return &laci_image_resize_##name;
  LACI_KERNEL_VARIANTS(ONE)
#undef ONE
  return NULL;
}

static uint8_t *random_bytes(size_t n, uint64_t seed) {
  uint8_t *bytes = malloc(n);
  assert_non_null(bytes);
  for (size_t at = 0; at < n; at++) bytes[at] = (uint8_t)laci_rng(seed, 7, at);
  return bytes;
}

/** Rows of the result with marked bytes around them. */
static uint8_t *marked(size_t n) {
  uint8_t *bytes = malloc(n + 2 * (size_t)GUARD);
  assert_non_null(bytes);
  memset(bytes, MARK, n + 2 * (size_t)GUARD);
  return bytes;
}

static void expect_marks(const uint8_t *bytes, size_t n) {
  for (size_t at = 0; at < GUARD; at++) {
    assert_int_equal(bytes[at], MARK);
    assert_int_equal(bytes[GUARD + n + at], MARK);
  }
}

/** in x rows pixels become out x rows: exactly the slack follows the last row. */
static void try_across(int in, int out, int rows, const laci_image_resize *kernel) {
  laci_taps taps = {0};
  size_t from_stride = (size_t)in * 3, to_stride = (size_t)out * 3, n = to_stride * (size_t)rows;
  uint8_t *from =
      random_bytes(from_stride * (size_t)rows + LACI_RESIZE_SLACK, (uint64_t)(in + out));
  uint8_t *want = marked(n), *got = marked(n);
  laci_resize_rows plan = {.from = from,
                           .to = want + GUARD,
                           .from_stride = from_stride,
                           .to_stride = to_stride,
                           .n = rows};
  assert_int_equal(laci_resize_taps_compute(&taps, in, out, 0, out, NULL), LAC_OK);
  laci_image_resize_scalar.across(taps.spans, taps.n, &plan);
  plan.to = got + GUARD;
  kernel->across(taps.spans, taps.n, &plan);
  assert_memory_equal(got, want, n + 2 * (size_t)GUARD);
  expect_marks(got, n);
  laci_resize_taps_clear(&taps);
  free(from);
  free(want);
  free(got);
}

static void try_down(int in, int out, int width, const laci_image_resize *kernel) {
  laci_taps taps = {0};
  size_t stride = (size_t)width * 3;
  uint8_t *from = random_bytes(stride * (size_t)in, (uint64_t)(in + width));
  uint8_t *want = marked(stride), *got = marked(stride);
  assert_int_equal(laci_resize_taps_compute(&taps, in, out, 0, out, NULL), LAC_OK);
  for (int y = 0; y < out; y++) {
    laci_image_resize_scalar.down(taps.spans[y], from, stride, want + GUARD);
    kernel->down(taps.spans[y], from, stride, got + GUARD);
    assert_memory_equal(got, want, stride + 2 * (size_t)GUARD);
    expect_marks(got, stride);
  }
  laci_resize_taps_clear(&taps);
  free(from);
  free(want);
  free(got);
}

static void every_variant_gives_the_scalar_bytes(void **state) {
  (void)state;
  static const int sizes[][2] = {{1, 1},   {1, 5},   {5, 1},    {3, 2},    {7, 7},    {8, 3},
                                 {31, 17}, {50, 64}, {97, 31},  {224, 56}, {300, 10}, {500, 224},
                                 {2, 9},   {4, 4},   {640, 33}, {13, 12},  {100, 99}};
  for (int level = 0; level <= (int)laci_cpu_level_in_force(); level++) {
    const laci_image_resize *kernel = variant(level);
    if (!kernel) continue;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
      for (int other = 1; other <= 8; other++) {
        try_across(sizes[k][0], sizes[k][1], other, kernel);
        try_down(sizes[k][0], sizes[k][1], other * 5 - 4, kernel);
      }
    }
  }
}

static void try_scale(size_t width, int n_channels, bool mirrored,
                      const laci_image_resize *kernel) {
  const laci_image_scale how = {
      {123.675F, 116.28F, 103.53F}, {58.395F, 57.12F, 57.375F}, n_channels, mirrored};
  const size_t channel_stride = width + 5, n = channel_stride * 3;
  uint8_t *row = random_bytes(width * 3, width);
  float *want = calloc(n, sizeof *want), *got = calloc(n, sizeof *got);
  assert_true(want && got);
  laci_image_resize_scalar.scale(&how, row, width, want, channel_stride);
  kernel->scale(&how, row, width, got, channel_stride);
  assert_memory_equal(got, want, n * sizeof *got); /* what is between the rows, too */
  for (size_t x = 0; x < width; x++) {
    for (int c = 0; c < n_channels; c++) {
      size_t at = mirrored ? width - 1 - x : x;
      assert_true(got[(size_t)c * channel_stride + at] ==
                  ((float)row[x * 3 + (size_t)c] - how.mean[c]) / how.std[c]);
    }
  }
  free(row);
  free(want);
  free(got);
}

static void every_variant_scales_alike(void **state) {
  (void)state;
  for (int level = 0; level <= (int)laci_cpu_level_in_force(); level++) {
    const laci_image_resize *kernel = variant(level);
    for (size_t width = 1; kernel && width < 40; width++) {
      for (int mirrored = 0; mirrored < 2; mirrored++) {
        try_scale(width, 3, mirrored, kernel);
        try_scale(width, 1, mirrored, kernel);
      }
    }
  }
}

/* White stays white, though rounded weights sum up to a little more or less than one. */
static void plain_colours_stay(void **state) {
  (void)state;
  const laci_image_resize *kernel = laci_image_resize_variant();
  for (int in = 1; in < 3000; in = in * 3 / 2 + 1) {
    laci_taps taps = {0};
    size_t n = (size_t)in * 3;
    uint8_t *from = malloc(n + LACI_RESIZE_SLACK), to[3 * 9];
    assert_non_null(from);
    memset(from, 255, n + LACI_RESIZE_SLACK);
    laci_resize_rows rows = {
        .from = from, .to = to, .from_stride = n, .to_stride = sizeof to, .n = 1};
    assert_int_equal(laci_resize_taps_compute(&taps, in, 9, 0, 9, NULL), LAC_OK);
    kernel->across(taps.spans, taps.n, &rows);
    for (size_t at = 0; at < sizeof to; at++) assert_int_equal(to[at], 255);
    laci_resize_taps_clear(&taps);
    free(from);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_variant_gives_the_scalar_bytes),
      cmocka_unit_test(every_variant_scales_alike),
      cmocka_unit_test(plain_colours_stay),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
